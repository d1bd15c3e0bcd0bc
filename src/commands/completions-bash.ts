/**
 * The script for bash 3.2 and later, also without the bash-completion package, as macOS and slim images have it: the
 * library's own needs functions of that package, can't be loaded twice, and evaluates what was typed so far.
 *
 * The words are put together again where bash has split them at `=` and `:`; what is offered replaces the last piece.
 */
export function bashScript(program: string): string {
  const name = `__${program.replaceAll('-', '_')}_complete`;
  return `# bash completion for ${program}

${name}() {
    local cur=\${COMP_WORDS[COMP_CWORD]} prev=\${COMP_WORDS[COMP_CWORD - 1]} words=() word i open=0
    for ((i = 1; i <= COMP_CWORD; i++)); do
        word=\${COMP_WORDS[i]}
        if ((\${#words[@]} > 0)) && { ((open)) || [[ $word == [=:] ]]; }; then
            words[\${#words[@]} - 1]+=$word
        else
            words+=("$word")
        fi
        open=0
        if [[ $word == [=:] ]]; then open=1; fi
    done
    if [[ $cur == [=:] ]]; then cur=; fi
    COMPREPLY=()
    if [[ $prev == --dir ]]; then
        compopt -o filenames 2>/dev/null
        while IFS= read -r word; do
            COMPREPLY+=("$word")
        done < <(compgen -d -- "$cur")
        return
    fi
    # A line is a word, a tab and its description; the last one is a colon and a number for other shells.
    while IFS=$'\\t' read -r word _; do
        if [[ $word != :[0-9]* && $word == "$cur"* ]]; then COMPREPLY+=("$word"); fi
    done < <(command ${program} complete -- "\${words[@]}" 2>/dev/null)
}

complete -F ${name} ${program}
`;
}
