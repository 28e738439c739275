
# Bash ends a word at a colon, also within sobas:paper. So the completer gets whole words, and the part that is already
# typed is removed from its offers.
_sweetspot_whole() {
    local typed="${COMP_LINE:0:COMP_POINT}"
    local word="${typed##*[[:space:]]}"
    if [[ "$word" != *:* || "$COMP_WORDBREAKS" != *:* ]]; then
        _sweetspot "$@"
        return
    fi
    read -r -a COMP_WORDS <<< "$typed"
    COMP_CWORD=$(( ${#COMP_WORDS[@]} - 1 ))
    _sweetspot "$1" "$word" "${COMP_WORDS[COMP_CWORD - 1]}"
    COMPREPLY=("${COMPREPLY[@]#"${word%"${word##*:}"}"}")
}
complete -F _sweetspot_whole -o bashdefault -o default sweetspot
