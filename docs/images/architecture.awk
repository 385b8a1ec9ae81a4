# architecture.awk - draws architecture.txt as SVG; libraries come from src/DEPENDS.
#
#   awk -f docs/images/architecture.awk src/DEPENDS docs/images/architecture.txt
#
# SPDX-License-Identifier: Apache-2.0
# Copyright the dnn-toolkit authors

function px(x) { return 12 + x * 124 }
function py(y) { return 12 + y * 84 }
function escape(s) { gsub(/&/, "\\&amp;", s); gsub(/</, "\\&lt;", s); return s }
function text(x, y, class, s) {
    if (s != "") printf "<text x=\"%d\" y=\"%d\" class=\"%s\">%s</text>\n", x, y, class, escape(s)
}
function after(n,    s, i) {
    s = $0
    for (i = 0; i < n; i++) sub(/^[^ ]+ +/, "", s)
    return s
}
# libraries(NAME, WIDTH): sets line[1..lines] to the names of its libraries, WIDTH letters a line
function libraries(name, width,    i, n, part) {
    n = split(needs[name], part, " ")
    lines = 0
    for (i = 1; i <= n; i++) {
        if (!(part[i] in called)) { print "no lib line for " part[i] > "/dev/stderr"; failed = 1 }
        if (lines && length(line[lines] called[part[i]]) + 2 <= width) line[lines] = line[lines] ", " called[part[i]]
        else line[++lines] = called[part[i]]
    }
}
BEGIN {
    fill["data"] = "#e8f0fb"; fill["meet"] = "#fdf1dd"; fill["compute"] = "#e9f5e9"; fill["base"] = "#eeeeee"
    edge_colour["data"] = "#3567a8"; edge_colour["meet"] = "#b36b00"; edge_colour["compute"] = "#2f7d32"; edge_colour["base"] = "#666666"
    colour = "#666666"
    printf "<svg xmlns=\"http://www.w3.org/2000/svg\" width=\"%d\" height=\"%d\" viewBox=\"0 0 %d %d\">\n",
        px(8) + 12, py(9.6) + 6, px(8) + 12, py(9.6) + 6
    print "<!-- made from docs/images/architecture.txt by architecture.awk: make figures"
    print "     SPDX-License-Identifier: Apache-2.0 -->"
    print "<style>text{font-family:Helvetica,Arial,sans-serif;font-size:10.5px;fill:#222;text-anchor:middle}"
    print ".n{font-weight:bold;font-size:12.5px}.l{font-style:italic;font-size:9.5px;fill:#555}"
    print ".t{text-anchor:start;font-weight:bold;font-size:12px}</style>"
    print "<defs><marker id=\"a\" markerWidth=\"8\" markerHeight=\"8\" refX=\"6\" refY=\"3\" orient=\"auto\">" \
        "<path d=\"M0,0 L6,3 L0,6 z\" fill=\"#333\"/></marker></defs>"
    print "<rect width=\"100%\" height=\"100%\" fill=\"white\"/>"
}
FNR == 1 { file++ }
/^#/ || NF == 0 { next }
file == 1 && /^</ {
    header = substr($1, 2, length($1) - 2)
    for (i = 2; i <= NF; i++) needs[$i] = needs[$i] " " header
    next
}
file == 1 { component[$1] = 1; next }
$1 == "lib" { called[$2] = $3; next }
$1 == "lane" {
    colour = edge_colour[$6]
    printf "<rect x=\"%d\" y=\"%d\" width=\"%d\" height=\"%d\" rx=\"6\" fill=\"%s\"/>\n",
        px($2), py($3), $4 * 124, $5 * 84, fill[$6]
    text(px($2) + 8, py($3) + 14, "t", after(6))
    next
}
$1 == "doc" {
    n = split(after(3), part, "|")
    x = px($2) + 6; y = py($3) + 8
    printf "<path d=\"M%d,%d h92 l12,12 v32 h-104 z\" fill=\"white\" stroke=\"#888\" stroke-dasharray=\"3,2\"/>\n", x, y
    text(x + 50, y + 20, "n", part[1])
    text(x + 50, y + 36, "", part[2])
    next
}
$1 == "box" {
    if (!($5 in component)) { print "src/DEPENDS has no component " $5 > "/dev/stderr"; failed = 1 }
    shown[$5] = 1
    n = split(after(5), part, "|")
    libraries($5, 20)
    x = px($2) + 6; y = py($3) + 4; w = $4 * 124 - 18
    h = 60 > 38 + (n > 1 && part[2] != "" ? 13 : 0) + 12 * lines ? 60 : 38 + (part[2] != "" ? 13 : 0) + 12 * lines
    if ($4 > 1) h = 48
    printf "<rect x=\"%d\" y=\"%d\" width=\"%d\" height=\"%d\" rx=\"4\" fill=\"white\" stroke=\"%s\" stroke-width=\"1.5\"/>\n",
        x, y, w, h, colour
    text(x + w / 2, y + 16, "n", $5)
    text(x + w / 2, y + 31, "", part[1])
    text(x + w / 2, y + 44, "", part[2])
    for (i = 1; i <= lines; i++) text(x + w / 2, y + 32 + (part[2] != "" ? 12 : 0) + 12 * i, "l", line[i])
    next
}
$1 == "edge" {
    path = ""
    for (i = 2; i < NF; i += 2) path = path (i == 2 ? "M" : " L") int(px($i)) "," int(py($(i + 1)))
    printf "<path d=\"%s\" fill=\"none\" stroke=\"#333\" stroke-width=\"1.3\" marker-end=\"url(#a)\"/>\n", path
    next
}
{ print FILENAME ":" FNR ": unknown line: " $0 > "/dev/stderr"; failed = 1 }
END {
    for (name in component)
        if (!(name in shown)) { print "architecture.txt does not show " name > "/dev/stderr"; failed = 1 }
    print "</svg>"
    exit failed
}
