#!/bin/sh
# Installs shadowob-connector for this user. POSIX sh; needs curl or wget, and one of sha256sum, shasum, openssl.
#
#   curl -fsSL <release>/install.sh | sh
#
#   SHADOWOB_CONNECTOR_INSTALL_DIR    where to put it                     (~/.local/bin)
#   SHADOWOB_CONNECTOR_VERSION        which release, such as 0.1.0        (the latest)
#   SHADOWOB_CONNECTOR_DOWNLOAD_URL   the folder that holds the assets and SHA256SUMS
#   SHADOWOB_CONNECTOR_LIBC           glibc or musl, when the guess is wrong
#
# The old executable stays as it is until the new one is downloaded, verified and has run once.

RELEASES='https://github.com/shadowob/shadowob-connector/releases'
NAME='shadowob-connector'

# Everything is inside functions and started by the last line, so a script cut short by a broken
# connection does nothing.

say() {
  printf '%s\n' "$*"
}

fail() {
  printf '%s: %s\n' "$NAME" "$*" >&2
  exit 1
}

has() {
  command -v "$1" >/dev/null 2>&1
}

# A child in the foreground would hold back our traps until it ends; `wait` is interrupted at once.
run() {
  "$@" &
  child=$!
  wait "$child" && status=0 || status=$?
  child=''
  return "$status"
}

cleanup() {
  if [ -n "$child" ]; then
    kill "$child" 2>/dev/null
    wait "$child" 2>/dev/null
  fi
  [ -z "$work" ] || rm -rf "$work"
  # Fails when something else is in it, and then it is to stay.
  [ -z "$made_dir" ] || rmdir "$made_dir" 2>/dev/null
  return 0
}

detect_os() {
  case "$(uname -s)" in
    Linux) os=linux ;;
    Darwin) os=darwin ;;
    MINGW* | MSYS* | CYGWIN* | Windows_NT) fail 'on Windows, run install.ps1 in PowerShell' ;;
    *) fail "there is no build for $(uname -s)" ;;
  esac
}

detect_arch() {
  machine=$(uname -m)
  case "$machine" in
    x86_64 | amd64) arch=x64 ;;
    arm64 | aarch64) arch=arm64 ;;
    *) fail "there is no build for the processor type $machine; x64 and arm64 (64 bit) are supported" ;;
  esac
  if [ "$os" = darwin ]; then
    # A shell under Rosetta says x86_64 on Apple silicon.
    if [ "$(sysctl -n hw.optional.arm64 2>/dev/null)" = 1 ] || [ "$(sysctl -n sysctl.proc_translated 2>/dev/null)" = 1 ]; then
      arch=arm64
    fi
    return 0
  fi
  # A 64-bit kernel can carry a 32-bit system; then the loader for our executable is absent.
  if [ "$(shell_bytes 5 1)" = 01 ]; then
    fail "this is a 32-bit system on a 64-bit kernel ($machine); only 64-bit systems are supported"
  fi
}

# Hexadecimal bytes of /bin/sh: offset counted from 1, length. ELF byte 5 is the class, 1 for 32 bit.
shell_bytes() {
  dd if="$probe" bs=1 skip="$(($1 - 1))" count="$2" 2>/dev/null | od -An -v -tx1 | tr -d ' \n'
}

# The path of a loader stands near the start of every dynamic ELF program.
shell_loader() {
  dd if="$probe" bs=4096 count=1 2>/dev/null | LC_ALL=C tr -c 'A-Za-z0-9/._-' '\n' | grep -E '/ld(64)?-[^/]*\.so' | head -n 1
}

# ldd says it, on glibc by its exit 0 and stdout, on musl by its exit 1 and stderr. Where it is absent or
# mute, the loader that /bin/sh asks for decides. That /lib/ld-musl-* exists says nothing.
detect_libc() {
  case "${SHADOWOB_CONNECTOR_LIBC-}" in
    glibc | musl)
      libc=$SHADOWOB_CONNECTOR_LIBC
      return 0
      ;;
    '') ;;
    *) fail "SHADOWOB_CONNECTOR_LIBC is '$SHADOWOB_CONNECTOR_LIBC'; glibc and musl are known" ;;
  esac
  by_ldd=''
  case "$(ldd --version 2>&1)" in
    *musl*) by_ldd=musl ;;
    *GLIBC* | *'GNU libc'* | *'Free Software Foundation'*) by_ldd=glibc ;;
  esac
  by_loader=''
  case "$(shell_loader)" in
    *ld-musl-*) by_loader=musl ;;
    *ld-linux* | *ld64.so*) by_loader=glibc ;;
  esac
  libc=${by_ldd:-${by_loader:-glibc}}
  if [ -n "$by_ldd" ] && [ -n "$by_loader" ] && [ "$by_ldd" != "$by_loader" ]; then
    say "Note: ldd says $by_ldd, /bin/sh says $by_loader; taking $libc. SHADOWOB_CONNECTOR_LIBC decides otherwise."
  fi
}

pick_asset() {
  detect_os
  detect_arch
  libc=''
  [ "$os" != linux ] || detect_libc
  asset="$NAME-$os-$arch"
  [ "$libc" != musl ] || asset="$asset-musl"
}

pick_url() {
  version=${SHADOWOB_CONNECTOR_VERSION-}
  version=${version#v}
  [ "$version" != latest ] || version=''
  case "$version" in
    *[!0-9A-Za-z.+-]*) fail "'$version' is no version" ;;
  esac
  if [ -n "${SHADOWOB_CONNECTOR_DOWNLOAD_URL-}" ]; then
    url=${SHADOWOB_CONNECTOR_DOWNLOAD_URL%/}
  elif [ -n "$version" ]; then
    url="$RELEASES/download/v$version"
  else
    url="$RELEASES/latest/download"
  fi
}

pick_tools() {
  if has curl; then
    downloader=curl
  elif has wget; then
    downloader=wget
  else
    fail 'curl or wget is needed to download'
  fi
  if has sha256sum; then
    hasher=sha256sum
  elif has shasum; then
    hasher=shasum
  elif has openssl; then
    hasher=openssl
  else
    fail 'nothing can verify the download: install sha256sum (coreutils), shasum (perl) or openssl'
  fi
}

download() {
  if [ "$downloader" = curl ]; then
    # A redirect must not lead from https to something weaker.
    case "$1" in
      https://*) run curl -fsSL --proto '=https' --tlsv1.2 --connect-timeout 20 -o "$2" "$1" ;;
      *) run curl -fsSL --connect-timeout 20 -o "$2" "$1" ;;
    esac
  else
    # GNU's would try 20 times; some of BusyBox's know neither option.
    case "$(wget --help 2>&1)" in
      *--tries*) run wget -q -t 2 -T 60 -O "$2" "$1" ;;
      *'-T SEC'*) run wget -q -T 60 -O "$2" "$1" ;;
      *) run wget -q -O "$2" "$1" ;;
    esac
  fi
}

hash_of() {
  case "$hasher" in
    sha256sum) line=$(sha256sum <"$1") ;;
    shasum) line=$(shasum -a 256 <"$1") ;;
    openssl) line=$(openssl dgst -sha256 -r <"$1") ;;
  esac
  printf '%s\n' "${line%% *}" | tr '[:upper:]' '[:lower:]'
}

# The sum that the release names for our asset; empty when it names none.
expected_sum() {
  while read -r sum file; do
    if [ "${file#\*}" = "$asset" ]; then
      printf '%s\n' "$sum" | tr '[:upper:]' '[:lower:]'
      return 0
    fi
  done <"$work/SHA256SUMS"
}

# A run that was killed outright could not clean up. Its folder names its process.
sweep() {
  for left in "$dir/.$NAME-install."*; do
    [ -d "$left" ] || continue
    owner=${left##*.}
    # Our own number on it means that an earlier process had the same.
    if [ "$owner" = $$ ] || ! kill -0 "$owner" 2>/dev/null; then rm -rf "$left"; fi
  done
}

prepare_dir() {
  if [ -n "${SHADOWOB_CONNECTOR_INSTALL_DIR-}" ]; then
    dir=$SHADOWOB_CONNECTOR_INSTALL_DIR
  elif [ -n "${HOME-}" ]; then
    dir=$HOME/.local/bin
  else
    fail 'HOME is not set: say where to install in SHADOWOB_CONNECTOR_INSTALL_DIR'
  fi
  case "$dir" in
    /*) ;;
    *) dir=$(pwd)/$dir ;;
  esac
  final=$dir/$NAME
  [ ! -d "$final" ] || fail "$final is a folder"
  if [ ! -d "$dir" ]; then
    mkdir -p "$dir" || fail "cannot make $dir"
    made_dir=$dir
  fi
  sweep
  # In the destination itself: only a rename inside one file system is whole or not at all.
  work=$dir/.$NAME-install.$$
  (umask 077 && mkdir "$work") || {
    work=''
    fail "cannot write to $dir"
  }
}

explain_failure() {
  case "$1" in
    126) say 'It may not be executed there: is the folder on a file system mounted noexec?' ;;
    132) say 'The processor lacks instructions that it needs (x64 needs SSE4.2).' ;;
    137) [ "$os" != darwin ] || say 'macOS refused its signature. Please report this with the version above.' ;;
  esac
  [ "$os" = linux ] || return 0
  if [ "$libc" = musl ]; then
    say 'The musl build needs libstdc++ and libgcc:'
    say '  apk add libstdc++ libgcc              (Alpine)'
    say '  xbps-install libstdc++ libgcc         (Void)'
    say 'If this system uses glibc, set SHADOWOB_CONNECTOR_LIBC=glibc and try again.'
  else
    say 'If this system uses musl (Alpine, Void musl), set SHADOWOB_CONNECTOR_LIBC=musl and try again.'
  fi
}

# Success is claimed only for an executable that has run.
prove() {
  run "$1" --version </dev/null >"$work/version" 2>&1 && status=0 || status=$?
  if [ "$status" -ne 0 ]; then
    {
      say "$NAME: $asset does not run here (exit $status):"
      head -n 5 "$work/version"
      explain_failure "$status"
    } >&2
    exit 1
  fi
  shown=$(head -n 1 "$work/version")
  if [ -n "$version" ]; then
    case " $shown " in
      *[!0-9A-Za-z.+-]"$version"[!0-9A-Za-z.+-]* | *[!0-9A-Za-z.+-]"v$version"[!0-9A-Za-z.+-]*) ;;
      *) fail "asked for version $version, but the download says: $shown" ;;
    esac
  fi
}

advise_path() {
  case ":${PATH-}:" in
    *":$dir:"*)
      first=$(command -v "$NAME" 2>/dev/null || :)
      if [ -n "$first" ] && [ "$first" != "$final" ]; then
        say "Note: $first comes first on your PATH and hides this one."
      fi
      return 0
      ;;
  esac
  say ''
  say "$dir is not on your PATH. To add it:"
  case "${SHELL-}" in
    */fish) say "  fish_add_path '$dir'" ;;
    */zsh) say "  echo 'export PATH=\"$dir:\$PATH\"' >> ~/.zshrc && . ~/.zshrc" ;;
    */bash) say "  echo 'export PATH=\"$dir:\$PATH\"' >> ~/.bashrc && . ~/.bashrc" ;;
    *) say "  export PATH=\"$dir:\$PATH\"        (in your shell's profile)" ;;
  esac
}

main() {
  set -u
  child='' work='' made_dir='' probe=${SHADOWOB_CONNECTOR_PROBE:-/bin/sh}
  trap cleanup EXIT
  trap 'exit 129' HUP
  trap 'exit 130' INT
  trap 'exit 143' TERM

  [ $# -eq 0 ] || fail "unknown argument '$1'; settings are environment variables, listed at the top of this script"
  pick_asset
  pick_url
  pick_tools
  prepare_dir

  download "$url/SHA256SUMS" "$work/SHA256SUMS" || fail "cannot download $url/SHA256SUMS"
  expected=$(expected_sum)
  case "$expected" in
    *[!0-9a-f]* | '') fail "$url/SHA256SUMS names no checksum for $asset" ;;
  esac

  if [ -f "$final" ] && [ -x "$final" ] && [ "$(hash_of "$final")" = "$expected" ]; then
    prove "$final"
    say "$final is already there: $shown"
    advise_path
    return 0
  fi

  say "Downloading $url/$asset"
  download "$url/$asset" "$work/$NAME" || fail "cannot download $url/$asset"
  actual=$(hash_of "$work/$NAME")
  [ "$actual" = "$expected" ] || fail "the checksum of $asset is $actual, but the release says $expected; nothing was installed"

  chmod 0755 "$work/$NAME" || fail "cannot set the mode of $work/$NAME"
  prove "$work/$NAME"
  mv -f "$work/$NAME" "$final" || fail "cannot put it at $final"
  made_dir=''
  say "Installed $final: $shown"
  say "Next: $final setup"
  advise_path
}

main "$@"
