# Adds up the closing lines of one run of `bun test` or more: " 12 pass", " 1 skip", " 0 fail", " 1 error",
# closed by "Ran 13 tests across 2 files." A program under test may print such lines too, so only the last
# ones before the closing line count. Prints "passed failed skipped"; an error outside a test is a failure.

{
  # With or without colours, with or without a carriage return.
  gsub(/\033\[[0-9;]*m/, "")
  sub(/\r$/, "")
}

/^ *[0-9]+ pass$/ { seen["pass"] = $1 + 0; next }
/^ *[0-9]+ fail$/ { seen["fail"] = $1 + 0; next }
/^ *[0-9]+ (skip|todo)$/ { seen[$2] = $1 + 0; next }
/^ *[0-9]+ errors?$/ { seen["error"] = $1 + 0; next }

/^Ran [0-9]+ tests? across [0-9]+ files?/ {
  passed += seen["pass"]
  failed += seen["fail"] + seen["error"]
  skipped += seen["skip"] + seen["todo"]
  split("", seen)
}

END { printf "%d %d %d\n", passed, failed, skipped }
