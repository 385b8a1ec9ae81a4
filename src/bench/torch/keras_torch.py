# keras_torch.py - a PyTorch network from Keras JSON, as Keras 2 and 3 and the zoo
# write it.  It shares no code with src/graph.
#
#   net = keras_torch.read("net.json")      # or a dict
#   net.load({("conv1", "kernel"): array})  # in Keras's layout
#   keras_torch.load_file(net, "model.weights.h5")
#   outputs = net(*inputs)                  # (batch, channels, space...)
#
# SPDX-License-Identifier: Apache-2.0
# Copyright the dnn-toolkit authors
import json
import re

import torch
from torch import nn

from torch_kinds import Penalty, edges, make

MODELS = ("Sequential", "Functional", "Model")
# Layers whose backward pass does not need their output: a ReLU may overwrite it.
INPLACE_SAFE = re.compile(r"(Conv\dD|Conv\dDTranspose|DepthwiseConv\dD|SeparableConv\dD|"
                          r"Dense|BatchNormalization|Add|Concatenate)$")


# ---- reading ----

class Layer:
    def __init__(self, kind, name, cfg, frozen):
        self.kind, self.name, self.cfg, self.frozen = kind, name, cfg, frozen
        self.module = None


class Node:
    def __init__(self, layer, inputs, training):
        self.layer, self.inputs, self.training = layer, inputs, training


class Reader:
    """Flattens nested models into a list of nodes."""

    def __init__(self, top):
        version = str(top.get("keras_version", "")) if isinstance(top, dict) else ""
        self.keras = int(version[0]) if version[:1] in ("1", "2", "3") and version \
            else 3 if isinstance(top, dict) and "module" in top else 2
        self.nodes, self.layers, self.inputs = [], {}, []
        self.outputs = self.open(top, "", False, None, None)

    def refs(self, at, found, training):
        """All references in a nested list; the training flag of the call."""
        if isinstance(at, list) and at and isinstance(at[0], str):
            found.append((at[0], at[1] if len(at) > 1 else 0,
                          at[2] if len(at) > 2 else 0))
            words = at[3] if len(at) > 3 and isinstance(at[3], dict) else {}
            if words.get("training") is False:
                training = False
        elif isinstance(at, list):
            for item in at:
                training = self.refs(item, found, training)
        elif isinstance(at, dict) and at.get("class_name") == "__keras_tensor__":
            found.append(tuple(at["config"]["keras_history"]))
        elif isinstance(at, dict):
            for item in at.values():
                training = self.refs(item, found, training)
        return training

    def calls(self, inbound):
        made = []
        if inbound and isinstance(inbound[0], list) and inbound[0] and \
                isinstance(inbound[0][0], str):
            inbound = [inbound]
        for call in inbound:
            found, training = [], None
            if isinstance(call, dict):
                training = self.refs(call["args"], found, training)
                if (call.get("kwargs") or {}).get("training") is False:
                    training = False
            else:
                training = self.refs(call, found, training)
            made.append((found, training))
        return made

    def open(self, model, prefix, frozen, given, training):
        """Append the nodes of one call of a model; returns the numbers of its outputs."""
        config = model if isinstance(model, list) else model["config"]
        listed = config if isinstance(config, list) else config["layers"]
        config = {} if isinstance(config, list) else config
        frozen = frozen or config.get("trainable") is False
        items = []
        for i, at in enumerate(listed):
            name = at.get("name") or at["config"].get("name") or \
                f"{at['class_name']}_{i + 1}"
            items.append((name, at, self.calls(at.get("inbound_nodes") or [])))
        chain = not any(calls for _, _, calls in items)
        if chain and items[0][1]["class_name"] != "InputLayer":
            first = items[0][1]
            shape = self.shape(first["config"] if isinstance(first["config"], dict)
                               else {}) or config.get("build_input_shape") or \
                (first.get("build_config") or {}).get("input_shape")
            if shape is None and first["class_name"] in MODELS:
                inner = first["config"]
                inner = inner["layers"] if isinstance(inner, dict) else inner
                shape = self.shape(inner[0]["config"])
            items.insert(0, (items[0][0] + "_input", {
                "class_name": "InputLayer", "config": {"batch_input_shape": shape}},
                []))
        for i in range(1, len(items)):
            if not items[i][2] and items[i][1]["class_name"] != "InputLayer":
                items[i] = items[i][:2] + ([([(items[i - 1][0], 0, 0)], None)],)
        return self.walk(config, items, chain, prefix, frozen, given, training)

    def shape(self, cfg):
        for key in ("batch_input_shape", "batch_shape"):
            if cfg.get(key) is not None:
                return cfg[key]
        for key in ("input_shape", "shape"):
            if cfg.get(key) is not None:
                return [None] + list(cfg[key])
        return None

    @staticmethod
    def bases(by_name, refs):
        """Keras counts calls of an inner model from 1; call 0 is its construction."""
        base = {}
        for name, (at, calls) in by_name.items():
            to = [call for n, call, _ in refs if n == name]
            if at["class_name"] in MODELS and to and min(to) > 0 and \
                    max(to) == len(calls):
                base[name] = 1
        return base

    def walk(self, config, items, chain, prefix, frozen, given, training):
        by_name = {name: (at, calls) for name, at, calls in items}
        ends = {}
        for key in "input_layers", "output_layers":
            ends[key] = []
            self.refs(config.get(key) or [], ends[key], None)
        inputs = [r[0] for r in ends["input_layers"]] or \
            [n for n, at, _ in items if at["class_name"] == "InputLayer"]
        if self.keras >= 3:  # calls of an inner model are counted from 1 in outputs only
            ends["output_layers"] = [
                (n, c - 1 if c > 0 and by_name[n][0]["class_name"] in MODELS[1:] else c,
                 t) for n, c, t in ends["output_layers"]]
        done, refs = {}, list(ends["output_layers"])
        refs += [r for _, _, calls in items for found, _ in calls for r in found]
        base = self.bases(by_name, refs)

        def need(name, call):
            at, calls = by_name[name]
            call -= base.get(name, 0)
            if (name, call) in done:
                return done[name, call]
            kind, cfg = at["class_name"], at["config"]
            if kind == "InputLayer":
                if given is not None:
                    result = [given[inputs.index(name)]]
                else:
                    self.nodes.append(Node(Layer(kind, prefix + name, cfg, False), [],
                                           None))
                    result = [len(self.nodes) - 1]
            else:
                refs, mode = calls[call]
                mode = training if mode is None else mode
                args = [need(n, c)[t] for n, c, t in refs]
                still = frozen or at.get("trainable") is False
                full = prefix + name
                if kind in MODELS:
                    result = self.open(at, full + "/", still, args, mode)
                else:
                    layer = self.layers.setdefault(full, Layer(
                        kind, full, cfg, still or cfg.get("trainable") is False))
                    self.nodes.append(Node(layer, args, mode))
                    result = [len(self.nodes) - 1]
            done[name, call] = result
            return result
        for name in inputs:
            node = need(name, 0)[0]
            if given is None:
                self.inputs.append(node)
        for name, at, calls in items:
            for call in range(max(1, len(calls))):
                need(name, call + base.get(name, 0))
        if ends["output_layers"]:
            return [need(n, c)[t] for n, c, t in ends["output_layers"]]
        if chain:
            return need(items[-1][0], base.get(items[-1][0], 0))
        taken = {r[0] for _, _, calls in items for refs, _ in calls for r in refs}
        return [need(n, 0)[0] for n, _, _ in items if n not in taken]


# ---- the network ----

class Net(nn.Module):
    def __init__(self, top, batch=2):
        super().__init__()
        reader = Reader(top)
        self.nodes, self.inputs, self.outputs = \
            reader.nodes, reader.inputs, reader.outputs
        self.input_shapes = [self.first(reader.shape(self.nodes[i].layer.cfg))
                             for i in self.inputs]
        self.fuse_padding()
        self.layers = nn.ModuleList()
        self.arrays = {}
        with torch.device("meta"), torch.no_grad():
            self.build(reader.keras, batch)
        self.to_empty(device="cpu")
        self.reset(0)

    @staticmethod
    def first(shape):
        """A Keras shape (batch, space..., channels) as (channels, space...)."""
        shape = shape.get("items") if isinstance(shape, dict) else shape
        shape = shape[0] if isinstance(shape[0], list) else shape
        return [shape[-1]] + list(shape[1:-1])

    def uses(self):
        count = [0] * len(self.nodes)
        for node in self.nodes:
            for i in node.inputs:
                count[i] += 1
        for i in self.outputs:
            count[i] += 2
        return count

    def calls(self):
        count = {}
        for node in self.nodes:
            count[node.layer.name] = count.get(node.layer.name, 0) + 1
        return count

    def fuse_padding(self):
        """ZeroPadding before a valid convolution becomes padding of the convolution."""
        count, per_layer = self.uses(), self.calls()
        self.skipped = set()
        for node in self.nodes:
            cfg = node.layer.cfg
            if not re.fullmatch(r"(Conv|DepthwiseConv|SeparableConv)\dD",
                                node.layer.kind) or \
                    cfg.get("padding", "valid") != "valid":
                continue
            before = self.nodes[node.inputs[0]]
            if not before.layer.kind.startswith("ZeroPadding") or \
                    count[node.inputs[0]] != 1 or per_layer[before.layer.name] != 1 or \
                    per_layer[node.layer.name] != 1:
                continue
            pads = edges(before.layer.cfg.get("padding", 1), int(node.layer.kind[-2]))
            if any(a != b for a, b in pads):
                continue
            node.layer.cfg = dict(cfg, padding=[a for a, _ in pads])
            self.skipped.add(node.inputs[0])
            node.inputs = before.inputs

    def build(self, keras, batch):
        count, per_layer, meta = self.uses(), self.calls(), {}
        for i, shape in zip(self.inputs, self.input_shapes):
            meta[i] = torch.empty([batch] + shape)
        self.steps, self.index = [], {}
        for i, node in enumerate(self.nodes):
            if not node.inputs or i in self.skipped:
                continue
            layer, xs = node.layer, [meta[k] for k in node.inputs]
            if layer.module is None:
                before = self.nodes[node.inputs[0]].layer
                inplace = count[node.inputs[0]] == 1 and per_layer[layer.name] == 1 \
                    and bool(INPLACE_SAFE.match(before.kind)) \
                    and before.cfg.get("activation") in (None, "linear")
                self.add(layer, make(layer.kind, layer.cfg, xs, keras, layer.frozen,
                                     inplace))
            meta[i] = layer.module.eval()(*xs)
            self.steps.append((self.index[layer.name], node.inputs, i, []))
            layer.module.always_eval = node.training is False
        self.output_shapes = [list(meta[i].shape) for i in self.outputs]
        last = {}
        for s, (_, inputs, _, _) in enumerate(self.steps):
            for k in inputs:
                last[k] = s
        for k, s in last.items():
            if k not in self.outputs:
                self.steps[s][3].append(k)
        self.train()

    def add(self, layer, module):
        reg = layer.cfg.get("activity_regularizer")
        if reg:
            inner = reg.get("config", reg)
            module = Penalty(inner.get("l1"), inner.get("l2"), module)
        self.index[layer.name] = len(self.layers)
        self.layers.append(module)
        layer.module = module
        for array in getattr(module, "arrays", []):
            self.arrays[layer.name, array.name] = array
            if layer.frozen:
                array.trainable = False
                array.tensor.requires_grad_(False)

    def train(self, mode=True):
        super().train(mode)
        for module in self.layers:
            if getattr(module, "always_eval", False):
                module.eval()
        return self

    def forward(self, *xs):
        vals = dict(zip(self.inputs, xs))
        for index, inputs, out, dead in self.steps:
            args = [vals[i] for i in inputs]
            for i in dead:
                del vals[i]
            vals[out] = self.layers[index](*args)
            del args
        return [vals[i] for i in self.outputs]

    def reset(self, seed):
        """Keras's default initializers: Glorot for kernels, else zeros and ones."""
        gen = torch.Generator().manual_seed(seed)
        with torch.no_grad():
            for module in self.modules():
                if isinstance(module, nn.modules.batchnorm._BatchNorm):
                    module.reset_parameters()
            for (_, name), array in self.arrays.items():
                t = array.tensor
                if array.fan:
                    shape = array.keras().shape
                    field = shape[:-2].numel()
                    limit = (6 / ((shape[-2] + shape[-1]) * field)) ** 0.5
                    t.copy_((torch.rand(t.shape, generator=gen) * 2 - 1) * limit)
                else:
                    t.fill_(1.0 if name in ("gamma", "moving_variance") else 0.0)

    def load(self, values):
        """Load weights in Keras's layout, by (layer, name); all must be given."""
        if set(values) != set(self.arrays):
            raise KeyError(f"weights differ: {set(values) ^ set(self.arrays)}")
        for key, value in values.items():
            self.arrays[key].load(value)

    def weights(self):
        return {key: array.keras() for key, array in self.arrays.items()}

    def gradients(self):
        return {key: array.keras(array.tensor.grad)
                for key, array in self.arrays.items()
                if array.trainable and array.tensor.grad is not None}

    def penalty(self):
        """The penalties of activity regularizers in the last forward pass."""
        found = [m.loss for m in self.modules() if isinstance(m, Penalty)]
        return sum(found) if found else 0.0


def read(source, batch=2):
    if not isinstance(source, (dict, list)):
        with open(source) as file:
            source = json.load(file)
    return Net(source, batch)


def load_file(net, path):
    """Load the weights of a file of Keras 3 (.weights.h5)."""
    import h5py
    values = {}
    with h5py.File(path) as file:
        def visit(at, group):
            if not at.endswith("vars") or not len(group):
                return
            name = group.attrs["name"]
            name = name.decode() if isinstance(name, bytes) else name
            own = [key for key in net.arrays
                   if key[0] == name or key[0].endswith("/" + name)]
            if len(own) != len(group):
                raise KeyError(f"{path}: {at} ({name}) has {len(group)} arrays, "
                               f"the network {len(own)}")
            for i, key in enumerate(own):
                values[key] = torch.from_numpy(group[str(i)][()])
        file.visititems(visit)
    net.load(values)
