# module.awk - prints dnn.module.in as a modulefile: awk -v form=tcl|lua.
#
# SPDX-License-Identifier: Apache-2.0

# The line without its first n words.  tcl() and lua() quote it: the text may contain
# a dollar sign or brackets, which are special in Tcl.
function rest(n,    s, i) {
    s = $0
    for (i = 0; i < n; i++) sub(/^[^ \t]+[ \t]*/, "", s)
    return s
}
function tcl(s) { return "{" s "}" }
function lua(s) { gsub(/\\/, "\\\\", s); gsub(/"/, "\\\"", s); return "\"" s "\"" }

BEGIN { if (form == "tcl") print "#%Module1.0" }
/^#/ || /^[ \t]*$/ { next }
$1 == "help" { nhelp++; help[nhelp] = rest(1); next }
$1 == "whatis" { out[++n] = form == "tcl" ? "module-whatis " tcl(rest(1)) : "whatis(" lua(rest(1)) ")"; next }
$1 == "conflict" { out[++n] = form == "tcl" ? "conflict " $2 : "conflict(" lua($2) ")"; next }
$1 == "prepend-path" {
    out[++n] = form == "tcl" ? "prepend-path " $2 " " tcl(rest(2)) : "prepend_path(" lua($2) ", " lua(rest(2)) ")"
    next
}
$1 == "setenv" {
    out[++n] = form == "tcl" ? "setenv " $2 " " tcl(rest(2)) : "setenv(" lua($2) ", " lua(rest(2)) ")"
    next
}
{ print "module.awk: line " NR ": unknown word " $1 > "/dev/stderr"; exit 1 }
END {
    if (form == "tcl") {
        print "proc ModulesHelp {} {"
        for (i = 1; i <= nhelp; i++) print "    puts stderr " tcl(help[i])
        print "}"
    } else {
        print "help([["
        for (i = 1; i <= nhelp; i++) print help[i]
        print "]])"
    }
    for (i = 1; i <= n; i++) print out[i]
}
