#!/bin/bash
# infer_report.t - test.html and pictures of the worst samples: of a segmentation, a regression and
# a classifier, of samples of the network's size and in tiles, on one rank and on three.
#
# SPDX-License-Identifier: Apache-2.0
# Copyright the dnn-toolkit authors
. "${srcdir:-.}/tests/tap.sh"
tmp=$(mktemp -d "${TMPDIR:-/tmp}/dnn-report.XXXXXX") || exit 1
trap 'rm -rf "$tmp"' EXIT
cd "$tmp" || exit 1
export OMP_NUM_THREADS=1 XDG_CACHE_HOME=$tmp/cache

cat > prepare.json << 'END'
{"generate": {"type": "blobs3d", "samples": 11, "size": 12, "classes": 2, "noise": 0.2},
 "to": "blobs.bp", "seed": 3}
END
guarded dnn-prepare -q prepare.json || exit 1
cat > masks.json << 'END'
{"layers": [
  {"class_name": "Conv3D", "config": {"filters": 3, "kernel_size": 3, "padding": "same", "activation": "softmax"}}],
 "input": [12, 12, 12, 1],
 "data": {"test_dataset": "blobs.bp", "test_split": "all", "test_batch_size": 4},
 "loss": "cross_entropy", "seed": 5, "deterministic": true,
 "inference": {"worst": 5, "formats": "npy"}}
END
# Input and target are the outputs of the first run: three channels of values.
cat > fields.json << 'END'
{"layers": [{"class_name": "Conv3D", "config": {"filters": 3, "kernel_size": 3, "padding": "same"}}],
 "input": [12, 12, 12, 3],
 "data": {"test_dataset": "values.bp", "test_split": "all", "test_batch_size": 4},
 "loss": "mse", "seed": 5, "deterministic": true, "inference": {"worst": 3}}
END
cat > labels.json << 'END'
{"layers": [{"class_name": "Flatten", "config": {}},
  {"class_name": "Dense", "config": {"units": 3, "activation": "softmax"}}],
 "input": [8, 8, 1],
 "data": {"test_dataset": "digits.bp", "test_split": "train", "test_batch_size": 5},
 "loss": "cross_entropy", "metrics": ["accuracy"], "seed": 5, "deterministic": true,
 "inference": {"worst": 4}}
END
# Images of the 8 x 8 pixels of a sequence of bytes, and their labels.
{
    printf '\0\0\010\003\0\0\0\022\0\0\0\010\0\0\0\010'
    seq 10000 | head -c $((18 * 64))
} > train-images-idx3-ubyte
{
    printf '\0\0\010\001\0\0\0\022'
    for _ in 1 2 3 4 5 6; do printf '\0\001\002'; done
} > train-labels-idx1-ubyte
guarded dnn-prepare -q --from train-images-idx3-ubyte --to digits.bp || exit 1

# infer CONFIG DIR [RANKS] OPTION...: prints errors
infer() {
    local config=$1 dir=$2 launch=()
    shift 2
    [[ ${1-} != [1-9] ]] || { launch=("$MPIEXEC" -n "$1"); shift; }
    guarded "${launch[@]}" dnn-infer --set dir="$dir" "$@" "$config" > "$dir.out" 2> "$dir.err" ||
        { echo "status $?"; cat "$dir.err"; }
    grep 'warning' "$dir.err" | grep -v 'the network is not trained'
}
# pictures N DIR: prints errors if there are not N pictures of different content in DIR and in its report
pictures() {
    [ "$(cat "$2"/pictures/worst-*.png | grep -ac IHDR)" = "$1" ] || ls "$2" "$2/pictures"
    [ "$(grep -o 'src="data:image/png' "$2/test.html" | wc -l)" = "$1" ] || echo "not $1 pictures in the report"
    [ "$(sha256sum "$2"/pictures/worst-*.png | cut -c 1-64 | sort -u | wc -l)" = "$1" ] || echo "equal pictures"
}
# same A B: prints pictures that differ
same() {
    diff -r "$1/pictures" "$2/pictures"
}
# has DIR TEXT...: prints texts that are not in the report
has() {
    local text
    for text in "${@:2}"; do
        tr '\n' ' ' < "$1/test.html" | grep -qF -- "$text" || echo "$1/test.html has no $text"
    done
    ! grep -o '<script[^>]*>\|<link[^>]*>\|src="[^d][^"]*"' "$1/test.html"
}

result "masks: tables, confusion matrix, pictures, facts" "$(
    infer masks.json one
    pictures 5 one
    has one '<h1>model: evaluation</h1>' '<h2>All samples</h2>' '<th>dice</th><td>0.' \
        '<h2>Loss and metrics of the configuration</h2>' '<th>loss</th>' \
        '<h2>Classes</h2>' '<th>hausdorff95</th>' '<h2>Confusion matrix</h2>' '<h2>Worst samples</h2>' '<h2>Pictures of the worst samples</h2>' \
        '<th>sample</th><th>dice</th>' '<th>version</th><td>dnn-toolkit ' '<th>command</th><td>dnn-infer ' \
        '<th>configuration</th><td>masks.json</td>' '<th>weights</th><td>not trained</td>' \
        '<th>data</th><td>blobs.bp' '<th>samples</th><td>11</td>' '<th>ranks</th><td>1 with 1 thread each' \
        '<th>time</th>'
    grep -q 'Calibration' one/test.html && echo "a reliability diagram"
    grep -qxF 'infer: report: one/test.html' one.err || cat one.err)"
result "masks: the pictures are those of the list, worst first" "$(
    awk '/worst samples/ { on = 1; next } on && NF == 3 { print ++n ". " $1 ": dice " $3 }' one.out > want
    grep -o '<figcaption>[0-9]*\. [^<]*' one/test.html | sed 's/<figcaption>//' | diff want -
    [ "$(wc -l < want)" = 5 ] || echo "not five in the list")"
result "masks: the same results and pictures on three ranks" "$(
    infer masks.json three 3
    same one three
    pictures 5 three
    has three '<th>ranks</th><td>3 with 1 thread each'
    cmp one/samples.csv three/samples.csv)"
result "masks: the results are not changed by drawing" "$(
    infer masks.json none --set inference.worst=0
    [ ! -e none/pictures ] || ls none/pictures
    has none '<h2>Classes</h2>' '<h2>Confusion matrix</h2>'
    grep 'Worst samples\|<img' none/test.html
    diff <(sed '/"worst": /,$d' one/test.json) <(sed '/"worst": /,$d' none/test.json)
    cmp one/samples.csv none/samples.csv)"
result "whole samples, computed in one tile, have the same pictures" "$(
    infer masks.json whole --set inference.tiles=whole
    pictures 5 whole
    same one whole)"
result "tiles: pictures, the same on three ranks" "$(
    infer masks.json tiles1 --set inference.tiles=true --set inference.tile=8
    infer masks.json tiles3 3 --set inference.tiles=true --set inference.tile=8
    pictures 5 tiles1
    same tiles1 tiles3
    has tiles1 '<h2>Classes</h2>' '<h2>Confusion matrix</h2>' '<h2>Worst samples</h2>'
    cmp tiles1/samples.csv tiles3/samples.csv)"
result "pictures of an earlier evaluation are replaced, those of the training are not" "$(
    mkdir -p old/pictures
    for each in worst-04 worst-05 prediction-01; do echo > "old/pictures/$each.png"; done
    echo > old/report.html
    infer masks.json old --set inference.worst=3
    printf '%s\n' prediction-01.png worst-01.png worst-02.png worst-03.png | diff - <(ls old/pictures)
    [ "$(wc -c < old/report.html)" = 1 ] || echo "report.html was replaced"
    infer masks.json old --set telemetry.report=false
    [ ! -e old/test.html ] || echo "a report that is disabled")"
result "pictures that cannot be written are a warning, and the rest is complete" "$(
    mkdir bad
    echo > bad/pictures
    infer masks.json bad | grep -v '^infer: warning: pictures of the worst samples are not written: .*bad/pictures'
    grep -c 'pictures of the worst samples are not written' bad.err | grep -vx 1
    has bad '<h2>Classes</h2>'
    infer masks.json bad 3 --set inference.tiles=true --set inference.tile=8 > /dev/null
    grep -c 'pictures of the worst samples are not written' bad.err | grep -vx 1
    has bad '<h2>Classes</h2>')"

mkdir values
cp one/*.npy values
guarded dnn-prepare -q --from values --target values --to values.bp || exit 1
result "values: channels, pictures, no confusion matrix" "$(
    infer fields.json fields
    infer fields.json fields3 3
    pictures 3 fields
    same fields fields3
    has fields '<h2>Channels</h2>' '<th>rmse</th>' '<h2>Worst samples</h2>'
    grep 'Confusion\|Calibration' fields/test.html)"
result "values in tiles" "$(
    infer fields.json field-tiles --set inference.tiles=whole
    infer fields.json field-tiles3 3 --set inference.tiles=whole
    same field-tiles field-tiles3
    same fields field-tiles)"

result "labels: reliability diagram, confusion matrix, pictures with classes" "$(
    infer labels.json labels
    infer labels.json labels3 3
    pictures 4 labels
    same labels labels3
    has labels '<h2>Calibration</h2>' '<h2>Confusion matrix</h2>' '<h2>Classes</h2>' '<th>accuracy</th>' '<svg')"

cat > check.py << 'END'
import html.parser, sys

class Checker(html.parser.HTMLParser):
    empty = {"meta", "img", "br", "rect", "line", "path", "polyline", "circle"}
    open = []
    def handle_starttag(self, tag, attrs):
        if tag not in self.empty:
            self.open.append(tag)
    def handle_endtag(self, tag):
        if tag in self.empty:
            return
        top = self.open.pop() if self.open else "nothing"
        if top != tag:
            sys.exit("</%s> ends <%s> at %s" % (tag, top, self.getpos()))

for name in sys.argv[1:]:
    checker = Checker()
    checker.feed(open(name).read())
    if checker.open:
        sys.exit("%s: still open: %s" % (name, checker.open))
END
if python3 -c '' 2> /dev/null; then
    result "all elements of the reports are closed" "$(
        python3 check.py one/test.html labels/test.html fields/test.html tiles1/test.html 2>&1)"
else
    skip "all elements of the reports are closed" "no python3"
fi
finish
