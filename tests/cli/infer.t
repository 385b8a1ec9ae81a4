#!/bin/bash
# infer.t - dnn-infer with inputs and outputs of all kinds, read by Python's libraries; tiles, flips
# and blending compared with NumPy; evaluation; messages.
#
# SPDX-License-Identifier: Apache-2.0
# Copyright the dnn-toolkit authors
# shellcheck source=tests/tap.sh
. "${srcdir:-.}/tests/tap.sh"
# shellcheck source=tests/infer_lib.sh
. "${srcdir:-.}/tests/infer_lib.sh"
if ! python3 -c 'import h5py, numpy, nibabel, tifffile, PIL, adios2' 2> /dev/null; then
    echo "1..0 # SKIP h5py, numpy, nibabel, tifffile, PIL or adios2 is not installed"
    exit 0
fi
reader=$(cd "$srcdir" && pwd)/tests/peer/infer_read.py
tmp=$(realpath "$(mktemp -d "${TMPDIR:-/tmp}/dnn-infer.XXXXXX")") || exit 1
trap 'rm -rf "$tmp"' EXIT
cd "$tmp" || exit 1
export OMP_NUM_THREADS=1 XDG_CACHE_HOME=$tmp/cache PYTHONDONTWRITEBYTECODE=1

# py CODE: see infer_read.py
py() { guarded python3 "$reader" "$1" 2>&1; }
# infer STATUS ARG...: prints errors; its output is in the files output and out
infer() {
    local want=$1 status=0
    guarded dnn-infer --set deterministic=true "${@:2}" > out 2> output || status=$?
    [ "$status" = "$want" ] || echo "status $status, not $want: $(cat output)"
}
# says TEXT...: the output contains each text
says() {
    for text; do
        grep -qF -- "$text" output || { echo "no \"$text\" in"; cat output; }
    done
}
# refused NAME STATUS TEXT ARG...: one message with this text
refused() {
    result "$1" "$(
        infer "$2" "${@:4}"
        says "$3"
        [ "$(grep -c '^dnn-infer: ' output)" = 1 ] || cat output)"
}

# ---- data and networks ----

make_model
make_volumes big 3 20 12 10
make_volumes scans 6 8
py '
rng = np.random.default_rng(3)
x = np.random.default_rng(1).normal(0.5, 0.5, (12, 10, 9)).astype("f4")
os.mkdir("kinds")
np.save("kinds/plain.npy", x)
np.save("kinds/last.npy", x[..., None])
np.save("kinds/first.npy", x[None])
import nibabel, tifffile
from PIL import Image
affine = np.array([[-0.9, 0.1, 0, 10], [0.1, 1.1, 0.2, -20], [0, -0.3, 2.5, 30], [0, 0, 0, 1]])
nibabel.save(nibabel.Nifti1Image(x.T, affine), "kinds/scan.nii.gz")
tifffile.imwrite("kinds/stack.tif", x)
x = rng.normal(0.5, 0.5, (12, 8, 8)).astype("f4")
for name, part in ("long", x), ("head", x[:8]), ("tail", x[4:]):
    np.save(name + ".npy", part)
for flip in 0, 1, 2, 3:
    axes = [a for i, a in enumerate((0, 2)) if flip >> i & 1]
    np.save(f"flip{flip}.npy", np.flip(x[:8], axes))
for folder, n in ("photos", 12), ("new", 3):
    for c, name in enumerate(["cat", "dog, big", "owl"]):
        where = f"{folder}/{name}" if folder == "photos" else folder
        os.makedirs(where, exist_ok=True)
        for i in range(n):
            x = rng.integers(0, 90, (8, 8, 3))
            x[..., c] += 150
            Image.fromarray(x.astype("uint8")).save(f"{where}/{name[:3]}{i}.png")
os.mkdir("pictures")
os.mkdir("pictures-masks")
for i in range(10):
    x, mask = rng.integers(0, 60, (16, 16, 3)), np.zeros((16, 16), "uint8")
    a, b = rng.integers(0, 8, 2)
    x[a:a + 8, b:b + 8, 0] += 150
    mask[a:a + 8, b:b + 8] = 1
    Image.fromarray(x.astype("uint8")).save(f"pictures/{i}.png")
    Image.fromarray(mask).save(f"pictures-masks/{i}.png")'

cat > prepare-scans.json << EOF
{"from": {"input_path": "scans", "target_path": "scans-masks"}, "to": "prepared.bp",
 "steps": [{"split": {"train": 0.7, "test": 0.3}}, {"normalise": "channel"}]}
EOF
guarded dnn-prepare -q prepare-scans.json || exit 1
guarded dnn-train -q --kernels heuristic --set dir=scanned --set data.dataset=prepared.bp train.json || exit 1
guarded dnn-prepare -q --from photos --split 0.75,0.25 --to photos.bp || exit 1
guarded dnn-prepare -q --from pictures --target pictures-masks --split 0.8,0.2 --to pictures.bp || exit 1
common='"seed": 5, "loss": "cross_entropy", "optimizer": {"type": "Adam", "learning_rate": 0.01}'
cat > photos.json << EOF
{"layers": [{"class_name": "Flatten", "config": {"name": "flat"}},
            {"class_name": "Dense", "config": {"name": "out", "units": 3}}], "input": [8, 8, 3], $common,
 "data": {"dataset": "photos.bp", "batch_size": 9}, "num_epochs": 40, "metrics": ["accuracy"]}
EOF
cat > pictures.json << EOF
{"layers": {"zoo": "unet2d", "base": 2, "depth": 1, "classes": 2, "input": [16, 16, 3]}, $common,
 "data": {"dataset": "pictures.bp", "batch_size": 4}, "num_epochs": 6}
EOF
for name in photos pictures; do
    guarded dnn-train -q --kernels heuristic --set dir=net-$name $name.json || exit 1
done
seg=seg/model.dnn

# ---- inputs ----

for input in plain.npy last.npy first.npy scan.nii.gz stack.tif; do
    result "input $input" "$(
        infer 0 $seg kinds/$input --output "kind-$input"
        says 'test samples: 1, in tiles of 8x8x8'
        ls "kind-$input"/*.npy > made || echo "no output"
        py "x = np.load('$(cat made)'); same('$input', x, np.load('kind-plain.npy/plain.npy')); same('sum', x.sum(-1), np.ones(x.shape[:-1]), 1e-5)")"
done
result "several files, in their order" "$(
    infer 0 $seg big/2.nii big/0.nii --output several --format npy,hdf5
    infer 0 $seg big --output whole-directory
    py '
same("0", np.load("several/0.npy"), np.load("whole-directory/0.npy"))
same("2", np.load("several/2.npy"), np.load("whole-directory/2.npy"))
is_true("1 is there", not os.path.exists("several/1.npy"))')"
result "files of several directories" "$(
    mkdir -p tree/a tree/b
    cp big/0.nii tree/a/x.nii
    cp big/1.nii tree/b/x.nii
    infer 0 $seg tree/b/x.nii tree/a/x.nii --output two-directories
    cd two-directories && ls a/x.npy b/x.npy > /dev/null)"
result "a directory with directories" "$(
    infer 0 $seg tree --output tree-out
    py '
same("a", np.load("tree-out/a/x.npy"), np.load("whole-directory/0.npy"))
same("b", np.load("tree-out/b/x.npy"), np.load("whole-directory/1.npy"))')"
result "raw files are prepared as the dataset was" "$(
    infer 0 scanned/model.dnn prepared.bp --output from-dataset
    infer 0 scanned/model.dnn scans --output from-files
    py '
n = 0
for name in os.listdir("from-dataset"):
    if name.endswith(".npy"):
        same(name, np.load("from-files/" + name), np.load("from-dataset/" + name), 1e-5)
        n += 1
is_true(f"{n} samples", n == 2)')"
result "tiles and batches of a dataset whose integers are not scaled" "$(
    echo '{"from": "pictures", "to": "unscaled.bp", "scale": 1}' > unscaled.json
    guarded dnn-prepare -q unscaled.json
    infer 0 net-pictures/model.dnn unscaled.bp --output unscaled
    infer 0 net-pictures/model.dnn unscaled.bp --output unscaled-tiles --set inference.tiles=true
    py '
for i in range(10):
    same("sample", np.load(f"unscaled-tiles/{i}.npy"), np.load(f"unscaled/{i}.npy"), 1e-5)')"
echo '{"layers": [{"class_name": "Activation", "config": {"activation": "linear"}}], "input": [8, 8, 8, 1],
 "data": {"test_from": {"input_path": "scans-masks", "input_kind": "mask"}}}' > same.json
result "a mask as input has its class numbers as values, in batches and tiles" "$(
    for tiles in auto true; do
        infer 0 --config=same.json --set data.test_output_path="same-$tiles" --set inference.formats=npy \
            --set inference.tiles="$tiles"
    done
    py '
import nibabel
for i in range(6):
    x = nibabel.load(f"scans-masks/{i}.nii").get_fdata().T
    same("batches", np.load(f"same-auto/{i}.npy").squeeze(), x.squeeze())
    same("tiles", np.load(f"same-true/{i}.npy").squeeze(), x.squeeze(), 1e-6)')"
result "a dataset with one split needs no choice" "$(
    infer 0 $seg big.bp --output one-split
    [ "$(find one-split -name '*.npy' | wc -l)" = 3 ] || ls one-split)"
result "a dataset of other steps is a warning" "$(
    infer 0 scanned/model.dnn big.bp --output other-steps --set data.test_split=all
    says 'big.bp was prepared with the steps [], but the training data with [{"normalise": "channel"}]; give the files'
    infer 0 scanned/model.dnn prepared.bp --output same-steps
    ! grep 'was prepared with' output)"
result "the split of a dataset can be chosen" "$(
    infer 0 $seg blobs.bp --set data.test_split=validation --output chosen
    says 'test: 4 samples')"

# ---- formats ----

result "all formats of volumes" "$(
    infer 0 $seg kinds/scan.nii.gz --output all --content values,classes --format hdf5,bp5,npy,nifti,tiff,overlay
    py '
import nibabel
x, c = np.load("all/scan.npy"), np.load("all/scan_classes.npy")
same("classes", c, x.argmax(-1))
same("hdf5", hdf5("all/outputs.h5", "scan.nii.gz"), x)
same("hdf5 classes", hdf5("all/outputs.h5", "scan.nii.gz_classes"), c)
same("bp5", bp5("all/outputs.bp", "scan.nii.gz", x), x)
same("nifti", nifti("all/scan.nii"), x)
same("nifti classes", nifti("all/scan_classes.nii"), c)
same("affine", nibabel.load("all/scan_classes.nii").affine, nibabel.load("kinds/scan.nii.gz").affine, 1e-5)
same("tiff", tiff("all/scan.tif"), x)
same("tiff classes", tiff("all/scan_classes.tif"), c)
same("overlay", png("all/scan_overlay.png").shape, (10, 9, 3))')"
result "pictures" "$(
    infer 0 net-pictures/model.dnn pictures --output masks --format png,overlay,npy --content classes
    py '
for i in range(10):
    c = np.load(f"masks/{i}_classes.npy")
    same(str(i), png(f"masks/{i}_classes.png"), c)
    x = png(f"masks/{i}_overlay.png")
    same("overlay", x.shape, (16, 16, 3))
    is_true("the background is changed", (c == 0).any() and (c == 1).any())')"
result "half precision, compressed" "$(
    infer 0 $seg kinds/plain.npy --output half --format hdf5,npy,nifti --set data.hdf5_precision=half --set inference.gzip=true
    py '
x = np.load("half/plain.npy")
is_true(f"{x.dtype}", x.dtype == "f2")
same("nifti", nifti("half/plain.nii.gz"), np.load("kind-plain.npy/plain.npy"))
same("npy", x, np.load("kind-plain.npy/plain.npy"), 1e-3)')"
result "CSV and JSON of a classifier, with names of classes" "$(
    infer 0 net-photos/model.dnn new --output tables --format csv,json,npy --set inference.top_k=2
    infer 0 net-photos/model.dnn new --output usual
    cmp tables/outputs.csv usual/outputs.csv
    infer 0 net-photos/model.dnn new --output named --set inference.names=true
    py '
rows, objects = table("tables/outputs.csv"), read_json("tables/outputs.json")
named = table("named/outputs.csv")
is_true(rows[0], rows[0] == ["row_id", "output_class", "confidence"])
is_true(named[0], named[0] == ["row_id", "name", "output_class", "confidence"])
names = sorted(os.listdir("new"))
is_true("number of rows", len(rows) == len(named) == len(objects) + 1 == 10)
for i, name in enumerate(names):
    want = {"cat": "cat", "dog": "dog, big", "owl": "owl"}[name[:3]]
    x = np.load("tables/" + name.replace(".png", ".npy"))
    is_true(rows[i + 1], rows[i + 1][:2] == [str(i), want])
    same("confidence", float(rows[i + 1][2]), x.max(), 1e-6)
    is_true(named[i + 1], named[i + 1][1:3] == [name, want])
    top = objects[i]["classes"]
    is_true(objects[i], objects[i]["name"] == name and len(top) == 2 and top[0]["class"] == want)
    same("top 2", [t["probability"] for t in top], np.sort(x)[:0:-1], 1e-6)')"

# ---- tiles ----

result "a whole volume equals one tile" "$(
    for set in tiles=whole 'tile=[20,12,10]'; do
        infer 0 $seg big --output "out-$set" --set "inference.$set"
    done
    says 'in tiles of 20x12x10'
    infer 0 --explain $seg big --output out-explain --set inference.tiles=whole
    grep -q '^3 samples as a whole, or in tiles if they do not fit; 3 parts' out || cat out
    py '
for i in 0, 1, 2:
    same(str(i), np.load(f"out-tiles=whole/{i}.npy"), np.load(f"out-tile=[20,12,10]/{i}.npy"), 1e-6)')"
result "batches of tiles give the same" "$(
    infer 0 $seg big --output batch1
    for batch in 3 9 99; do # 9: of two rows
        infer 0 $seg big --output batch$batch --set inference.batch=$batch
        py "for i in 0, 1, 2: same(str(i), np.load(f'batch$batch/{i}.npy'), np.load(f'batch1/{i}.npy'), 1e-6)"
    done)"
result "overlap, constant weights: the mean where tiles overlap" "$(
    for name in long head tail; do
        infer 0 $seg $name.npy --output blend --set inference.overlap=0.5 --set inference.blend=constant
    done
    py '
head, tail = np.load("blend/head.npy"), np.load("blend/tail.npy")
want = np.concatenate([head[:4], (head[4:] + tail[:4]) / 2, tail[4:]])
same("values", np.load("blend/long.npy"), want, 2e-6)')"
result "without overlap: tiles side by side" "$(
    infer 0 $seg long.npy --output apart --set inference.overlap=0
    py '
x, head, tail = np.load("apart/long.npy"), np.load("blend/head.npy"), np.load("blend/tail.npy")
same("first planes", x[:4], head[:4], 2e-6)
same("last planes", x[8:], tail[4:], 2e-6)')"
result "flips: the mean over flipped inputs" "$(
    for flip in 0 1 2 3; do
        infer 0 $seg flip$flip.npy --output flip --set inference.activation=none
    done
    infer 0 $seg flip0.npy --output flipped --set inference.activation=none --set 'inference.flips=[0,2]'
    infer 0 $seg flip0.npy --output flipped-soft --set inference.activation=softmax --set 'inference.flips=[0,2]'
    infer 0 $seg flip0.npy --output flipped-three --set inference.activation=none --set 'inference.flips=[0,2]' --set inference.batch=3
    py '
want = 0
for flip in 0, 1, 2, 3:
    axes = [a for i, a in enumerate((0, 2)) if flip >> i & 1]
    want = want + np.flip(np.load(f"flip/flip{flip}.npy"), axes) / 4
same("values", np.load("flipped/flip0.npy"), want, 1e-5)
same("probabilities", np.load("flipped-soft/flip0.npy"), softmax(want), 1e-5)
same("in a batch", np.load("flipped-three/flip0.npy"), want, 1e-5)')"
result "a sample smaller than a tile" "$(
    py 'np.save("small.npy", np.load("head.npy")[:5, :8, :6])'
    infer 0 $seg small.npy --output small
    py 'same("shape", np.load("small/small.npy").shape, (5, 8, 6, 3))')"
refused "too little memory" 8 'but inference.memory is 1000 B; smaller tiles' \
    $seg big --output memory --set inference.memory=1000
refused "flips along an axis that does not exist" 3 'inference.flips: axis 2 does not exist; the network has the spatial axes 0 to 1' \
    net-pictures/model.dnn pictures --output bad --set inference.flips=2
refused "flips of a classifier" 3 'inference.flips: ' \
    net-photos/model.dnn new --output bad --set inference.flips=0

# ---- evaluation ----

result "evaluation of volumes" "$(
    infer 0 $seg big --target big-masks --output judged --content values,classes
    says 'test: 3 samples'
    [ "$(grep -c '^  dice \|^  worst samples' out)" = 2 ] || cat out
    py '
import nibabel
totals = read_json("judged/test.json")
rows = table("judged/samples.csv")
hits = points = 0
for i in 0, 1, 2:
    c, t = np.load(f"judged/{i}_classes.npy"), nifti(f"big-masks/{i}.nii")
    hits, points = hits + (c == t).sum(), points + c.size
same("accuracy", totals["accuracy"], hits / points, 1e-6)
is_true("samples", totals["samples"] == 3 and len(rows) == 4)
is_true("classes", len(table("judged/evaluation.csv")) == 4)')"
result "distances are in the unit of the files, and outputs keep their spacing, also with targets" "$(
    for set in big scans; do
        infer 0 $seg $set --target $set-masks --output near-$set
        py "
import nibabel
affine = np.diag([2, 2, 2, 1])
for d in '$set', '$set-masks':
    os.mkdir(d + '-2mm')
    for name in os.listdir(d):
        old = nibabel.load(f'{d}/{name}')
        nibabel.save(nibabel.Nifti1Image(np.asarray(old.dataobj), affine), f'{d}-2mm/{name}')"
        infer 0 $seg $set-2mm --target $set-masks-2mm --output far-$set --format nifti
        py "
import nibabel
near, far = (read_json(f'{d}-$set/test.json') for d in ('near', 'far'))
for name in 'hausdorff95', 'surface_distance':
    same(name, far['evaluation']['totals'][name], 2 * near['evaluation']['totals'][name], 1e-6)
same('affine', nibabel.load('far-$set/0.nii').affine, np.diag([2, 2, 2, 1]))"
    done)"
cat > prepare-mm.json << EOF
{"from": {"input_path": "big-2mm", "target_path": "big-masks-2mm"}, "to": "mm.bp",
 "steps": [{"split": {"train": 1}}, {"resample": [2.5, 2.5, 2.5]}, {"pad": [9, 8, 8]}, {"crop": [8, 8, 8]}]}
EOF
result "outputs of resampled, padded and cropped volumes are at their place" "$(
    guarded dnn-prepare -q prepare-mm.json
    guarded dnn-train -q --kernels heuristic --set dir=mm --set data.dataset=mm.bp --set num_epochs=1 train.json
    for tiles in '"auto"' true; do
        infer 0 mm/model.dnn kinds/scan.nii.gz --output "mm-$tiles" --format nifti --set "inference.tiles=$tiles"
        py "
import nibabel
scan, out = nibabel.load('kinds/scan.nii.gz'), nibabel.load('mm-$tiles/scan.nii')
place = np.eye(4)
for i, (old, mm) in enumerate(zip(scan.shape, scan.header.get_zooms())):
    n = int(old * mm / 2.5 + 0.5)
    step, pad = old / n, max(0, (9 if i == 2 else 8) - n)
    place[i, i], place[i, 3] = step, (step - 1) / 2 + step * ((n + pad - 8) // 2 - pad // 2)
same('affine', out.affine, scan.affine @ place, 1e-4)
same('spacing', np.array(out.header.get_zooms()[:3]), np.array(scan.header.get_zooms()) * place.diagonal()[:3], 1e-4)
is_true('code', out.header['sform_code'] == scan.header['sform_code'])"
    done)"
result "the spacing of a dataset is not that of resized samples" "$(
    guarded dnn-prepare -q --from big-2mm --target big-masks-2mm --split 0,0,1 --to big-2mm.bp
    for set in big big-2mm; do
        infer 0 $seg $set.bp --output "resized-$set" --format nifti --set 'data.test_transforms=[{"resize": [8, 8, 8]}]'
    done
    py '
import glob, nibabel
near, far = (read_json(f"resized-{d}/test.json")["evaluation"]["totals"]["hausdorff95"] for d in ("big", "big-2mm"))
same("hausdorff95", far, near, 1e-6)
head = nibabel.load(sorted(glob.glob("resized-big-2mm/**/*.nii", recursive=True))[0]).header
is_true("unknown", head["sform_code"] == 0)')"
result "the same as JSON" "$(
    infer 0 $seg big --target big-masks --output judged-json --json
    python3 -m json.tool < out > tool 2>&1 || cat tool out
    cmp judged/test.json judged-json/test.json)"
result "evaluation of a classifier whose directories are classes" "$(
    infer 0 net-photos/model.dnn photos --output judged-photos
    py '
totals = read_json("judged-photos/test.json")
is_true("accuracy", totals["accuracy"] == 1 and totals["samples"] == 36)
is_true("names", [c["name"] for c in totals["evaluation"]["classes"]] == ["cat", "dog, big", "owl"])')"

result "directories have the class numbers of the model" "$(
    mkdir some other
    cp -r photos/owl "photos/dog, big" some
    infer 0 net-photos/model.dnn some --output judged-some
    py '
totals = read_json("judged-some/test.json")
is_true("accuracy", totals["accuracy"] == 1 and totals["samples"] == 24)'
    cp -r photos/owl other/bird
    cp -r photos/cat other
    infer 0 net-photos/model.dnn other --output judged-other
    says 'other: the directory "bird" is not a class of the model; the outputs are not evaluated'
    [ ! -e judged-other/test.json ] || echo evaluated)"
result "directories of pictures are no targets of a segmentation" "$(
    mkdir -p days/1 days/2
    cp pictures/[0-4].png days/1
    cp pictures/[5-9].png days/2
    infer 0 net-pictures/model.dnn days --output days-out
    ls days-out/1/0.npy days-out/2/5.npy > /dev/null)"

# ---- model files ----

result "--describe" "$(
    infer 0 --describe net-photos/model.dnn
    for text in 'model file, format version' 'input ' '8x8x3' 'cat, dog, big, owl'; do
        grep -qF -- "$text" out || cat out
    done
    infer 0 $seg -d --json
    py 'd = read_json("out"); is_true(d, d["network"]["parameters"] > 0 and d["model"]["targets"][0]["classes"] == 3)')"
result "--export" "$(
    for name in net.keras net.weights.h5 net.json; do
        infer 0 --export $name $seg
        [ -s $name ] || echo "no $name"
    done
    py '
import h5py, zipfile
is_true("layers", read_json("net.json")["class_name"] == "Functional")
is_true("members", "model.weights.h5" in zipfile.ZipFile("net.keras").namelist())
h5py.File("net.weights.h5").visit(lambda name: None)'
    infer 2 --export net.txt $seg)"
result "options before and after operands" "$(
    infer 0 --output order1 --format npy $seg --content classes big/0.nii
    infer 0 $seg big/0.nii --content classes --format npy --output order2
    differs order1 order2)"
result "--help and the manual page" "$(
    infer 0 --help
    grep -q -- '--target=PATH\|--target PATH' out || cat out
    infer 0 --help-man > /dev/null)"

# ---- messages ----

refused "no inputs" 2 'give the inputs: files, a directory or a dataset' $seg
refused "no output directory" 2 '--output DIR' $seg big
refused "no such model" 5 'none.dnn: cannot be read' none.dnn big --output bad
refused "no such input" 5 'none: cannot be read' $seg none --output bad
refused "an unknown format" 3 'must be one of hdf5' $seg big --output bad --format xyz
refused "files of several formats" 4 'contains files of several formats' $seg kinds/plain.npy kinds/scan.nii.gz --output bad
refused "a dataset without a test split" 4 'choose one of train, validation: --set data.test_split=' $seg blobs.bp --output bad
refused "targets for a dataset" 2 '--target: ' $seg big.bp --target big-masks --output bad
refused "volumes for a classifier" 3 'the column "input" of these samples is f32' net-photos/model.dnn big --output bad
result "a model whose file is cut" "$(
    head -c 20000 $seg > cut.dnn
    infer 4 cut.dnn big --output bad
    [ "$(grep -c '^dnn-infer: ' output)" = 1 ] || cat output)"
finish
