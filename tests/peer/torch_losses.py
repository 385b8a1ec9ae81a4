# torch_losses.py - losses and their gradients against PyTorch's or, if it has no such loss,
# against formulas in this file, in double precision.
#
# SPDX-License-Identifier: Apache-2.0
# Copyright the dnn-toolkit authors
import json
import os
import subprocess
import tempfile

import numpy as np
import torch
import torch.nn.functional as F

from tap import finish, result, unless

RNG = np.random.default_rng(7)
BOTTOM = os.environ.get("top_builddir", ".")
CASES = []


def case(name, shape, loss, want, labels=True, head="none", low=None, x=None, t=None):
    """want(y, t) -> the loss of the network's output y, channels last."""
    classes = shape[-1]
    if x is None:
        x = RNG.normal(size=shape) * 1.5
    if t is not None:
        labels = t.ndim < len(shape)
    elif labels:
        t = RNG.integers(0 if low is None else low, max(classes, 2), size=shape[:-1])
    else:
        t = RNG.random(size=shape)
    CASES.append((f"c{len(CASES)}", name, shape, loss, want, labels, head, x, t))


def first(y):
    """Move channels after the batch axis, as in PyTorch."""
    return y.movedim(-1, 1).contiguous()


def ends(x, head):
    return {"none": lambda v: v,
            "softmax": lambda v: F.softmax(v, -1),
            "log_softmax": lambda v: F.log_softmax(v, -1),
            "sigmoid": torch.sigmoid}[head](x)


# ---- PyTorch's own ----

W4 = [0.5, 2.0, 1.0, 0.25]
V4 = torch.tensor(W4, dtype=torch.float64)


def class_cases():
    s = (3, 5, 2, 4)
    log = lambda y: first(y)  # noqa: E731
    case("nll", (6, 4), "nll", lambda y, t: F.nll_loss(y, t), head="log_softmax")
    case("nll of positions", s, {"function": "NLL"},
         lambda y, t: F.nll_loss(log(y), t), head="log_softmax")
    case("nll, source none", s, {"function": "nll", "source": "none"},
         lambda y, t: F.nll_loss(log(y), t))
    case("nll, source none, weights", s,
         {"function": "nll", "source": "none", "weight": W4, "ignore_index": 1},
         lambda y, t: F.nll_loss(log(y), t, weight=V4, ignore_index=1))
    case("nll of a softmax", s, "nll",
         lambda y, t: F.nll_loss(log(torch.log(y)), t), head="softmax")
    case("nll with weights", s, {"function": "nll", "weight": W4},
         lambda y, t: F.nll_loss(log(y), t, weight=V4), head="log_softmax")
    case("cross_entropy", s, "cross_entropy", lambda y, t: F.cross_entropy(log(y), t))
    case("cross_entropy behind a softmax", s, "xent",
         lambda y, t: F.nll_loss(log(torch.log(y)), t), head="softmax")
    for eps in (0, 0.1):
        for weight in (None, W4):
            for ignore in (None, 2, -1):
                loss = {"function": "cross_entropy", "label_smoothing": eps}
                if weight:
                    loss["weight"] = weight
                if ignore is not None:
                    loss["ignore_index"] = ignore
                case(f"cross_entropy, smoothing {eps}, weight {weight is not None}, "
                     f"ignore {ignore}", s, loss,
                     lambda y, t, e=eps, w=weight, i=ignore: F.cross_entropy(
                         log(y), t, weight=V4 if w else None, label_smoothing=e,
                         ignore_index=-100 if i is None else i),
                     low=-1 if ignore == -1 else 0)
            case(f"cross_entropy of values, smoothing {eps}, weight "
                 f"{weight is not None}", s,
                 {"function": "cross_entropy", "label_smoothing": eps,
                  **({"weight": weight} if weight else {})},
                 lambda y, t, e=eps, w=weight: F.cross_entropy(
                     log(y), log(t), weight=V4 if w else None, label_smoothing=e),
                 labels=False)


def point_cases():
    s = (3, 5, 2, 4)
    case("mse", s, "MSE", lambda y, t: F.mse_loss(y, t), labels=False)
    case("mae", s, "mae", lambda y, t: F.l1_loss(y, t), labels=False)
    case("huber", s, {"function": "Huber", "delta": 0.4},
         lambda y, t: F.huber_loss(y, t, delta=0.4), labels=False)
    case("bce", s, "BCE", lambda y, t: F.binary_cross_entropy(y, t), labels=False,
         head="sigmoid")
    case("bce, source none", s, {"function": "bce", "weight": W4},
         lambda y, t: F.binary_cross_entropy(y, t, weight=V4), labels=False,
         x=RNG.random(size=s))
    case("bce of a softmax", s, "bce", lambda y, t: F.binary_cross_entropy(y, t),
         labels=False, head="softmax")
    case("bce_logits", s, {"function": "bce_logits", "weight": W4},
         lambda y, t: F.binary_cross_entropy_with_logits(y, t, weight=V4),
         labels=False)
    case("bce applies the sigmoid", s, {"function": "bce", "source": "sigmoid"},
         lambda y, t: F.binary_cross_entropy_with_logits(y, t), labels=False)
    case("bce of a mask", (3, 6, 5, 1), {"function": "bce", "ignore_index": -1},
         lambda y, t: F.binary_cross_entropy(y[..., 0][t >= 0], t[t >= 0].double()),
         head="sigmoid", low=-1)
    case("hinge", s, "hinge",
         lambda y, t: (1 - (2 * one_hot(t, 4) - 1) * y).clamp(min=0).mean())


def signs(t):
    return torch.where(t > 0, 1., -1.).double()


def more_point_cases():
    s = (3, 5, 2, 4)
    share = RNG.random(size=s) + .01
    share /= share.sum(-1, keepdims=True)
    signed = RNG.choice([-1., 1.], size=s)

    def kl(log_p, t):
        return F.kl_div(log_p, t, reduction="none").sum(-1).mean()

    case("kl_divergence of a softmax", s, "kl_divergence",
         lambda y, t: kl(torch.log(y), t), head="softmax", t=share)
    case("kl_divergence of a log_softmax", s, "kl_div", kl, head="log_softmax", t=share)
    case("kl_divergence applies the softmax", s,
         {"function": "kl_divergence", "source": "softmax"},
         lambda y, t: kl(F.log_softmax(y, -1), t), t=share)
    case("kl_divergence, source none", (6, 4),
         {"function": "kl_divergence", "source": "none"},
         lambda y, t: F.kl_div(y, t, reduction="batchmean"),
         t=np.where(share.reshape(-1, 4)[:6] > .1, share.reshape(-1, 4)[:6], 0))
    case("mape", s, "mean_absolute_percentage_error",
         lambda y, t: 100 * ((y - t) / t).abs().mean(), t=signed * (share + .1))
    case("poisson_nll", s, "poisson_nll", lambda y, t: F.poisson_nll_loss(y, t),
         t=RNG.poisson(3, size=s).astype(float))
    case("poisson_nll of rates", s, {"function": "poisson_nll", "log_input": False},
         lambda y, t: F.poisson_nll_loss(y, t, log_input=False),
         x=RNG.random(size=s) * 5, t=RNG.poisson(3, size=s).astype(float))
    case("hinge_embedding", s, {"function": "hinge_embedding", "margin": 0.7},
         lambda y, t: F.hinge_embedding_loss(y, t, margin=0.7), t=signed)
    case("soft_margin", s, "soft_margin", F.soft_margin_loss, t=signed)
    case("soft_margin of large numbers", (6, 4), "soft_margin", F.soft_margin_loss,
         x=RNG.normal(size=(6, 4)) * 30, t=signed.reshape(-1, 4)[:6])
    case("multilabel_soft_margin", (6, 4),
         {"function": "multilabel_soft_margin", "weight": W4},
         lambda y, t: F.multilabel_soft_margin_loss(y, t, weight=V4),
         t=(signed.reshape(-1, 4)[:6] + 1) / 2)


def listed(t):
    """The classes of a multi-hot row, padded with -1."""
    rows = [[j for j in range(len(r)) if r[j] > 0] for r in t]
    return torch.tensor([r + [-1] * (t.shape[1] - len(r)) for r in rows])


def margin_cases():
    s = (3, 5, 4)
    flat = lambda y: y.reshape(-1, y.shape[-1])  # noqa: E731
    yes = RNG.integers(0, 2, size=(3, 5))
    many = RNG.integers(0, 2, size=(15, 4)).astype(float)

    def keras_hinge(y, t):
        return ((y * (1 - t)).max(-1).values - (y * t).sum(-1) + 1).clamp(min=0)

    case("categorical_hinge", s, "categorical_hinge",
         lambda y, t: keras_hinge(y, one_hot(t, 4)).mean())
    case("categorical_hinge of a softmax, of values", s, "categorical_hinge",
         lambda y, t: keras_hinge(y, t).mean(), labels=False, head="softmax")
    case("categorical_hinge, ignoring", s,
         {"function": "categorical_hinge", "ignore_index": 1},
         lambda y, t: keras_hinge(y, one_hot(t, 4))[t != 1].mean())
    case("multi_margin", s, "multi_margin",
         lambda y, t: F.multi_margin_loss(flat(y), t.reshape(-1)))
    case("multi_margin, squared, weights", s,
         {"function": "multi_margin", "p": 2, "margin": 0.6, "weight": W4},
         lambda y, t: F.multi_margin_loss(flat(y), t.reshape(-1), p=2, margin=0.6,
                                          weight=V4))
    case("multi_margin, ignoring", s, {"function": "multi_margin", "ignore_index": 2},
         lambda y, t: F.multi_margin_loss(y[t != 2], t[t != 2]))
    case("multilabel_margin", (15, 4), "multilabel_margin",
         lambda y, t: F.multilabel_margin_loss(y, listed(t)), t=many)
    case("margin_ranking", s, {"function": "margin_ranking", "margin": 0.2},
         lambda y, t: F.margin_ranking_loss(y[..., :2], y[..., 2:],
                                            signs(t)[..., None].expand(3, 5, 2), 0.2),
         t=yes)
    case("cosine_embedding", s, {"function": "cosine_embedding", "margin": 0.3},
         lambda y, t: F.cosine_embedding_loss(flat(y)[:, :2], flat(y)[:, 2:],
                                              signs(t).reshape(-1), 0.3), t=yes)
    for more in ({}, {"p": 3, "margin": 0.4}, {"swap": True}):
        case(f"triplet_margin {more}", (9, 12), {"function": "triplet_margin", **more},
             lambda y, t, m=more: F.triplet_margin_loss(y[:, :4], y[:, 4:8], y[:, 8:],
                                                        **m), t=np.zeros(9))


# ---- by their formulas ----

def one_hot(t, classes):
    if classes == 1:
        return (t == 1).double()[..., None]
    return torch.stack([(t == j).double() for j in range(classes)], -1)


def overlap(p, t, counts, kind, whole=False, weight=None, eps=1e-7, alpha=.5, beta=.5):
    axes = tuple(range(0 if whole else 1, p.ndim - 1))
    p, t = p * counts[..., None], t * counts[..., None]
    both, a, b = (p * t).sum(axes), p.sum(axes), t.sum(axes)
    if kind == "dice":
        r = (2 * both + eps) / (a + b + eps)
    elif kind == "jaccard":
        r = (both + eps) / (a + b - both + eps)
    else:
        r = (both + eps) / (both + alpha * (a - both) + beta * (b - both) + eps)
    w = torch.ones(p.shape[-1], dtype=p.dtype) if weight is None else weight
    return 1 - ((r * w).sum(-1) / w.sum()).mean()


def overlap_cases():
    s = (3, 5, 4, 4)
    for kind in ("dice", "jaccard", "tversky"):
        for whole in (False, True):
            for head, source in (("softmax", "auto"), ("none", "softmax"),
                                 ("log_softmax", "softmax"), ("sigmoid", "sigmoid")):
                def want(y, t, k=kind, o=whole, h=head):
                    p = (torch.exp(y) if h == "log_softmax" else
                         F.softmax(y, -1) if h == "none" else y)
                    return overlap(p, one_hot(t, 4), t != 2, k, o, V4, 1e-3, .3, .8)
                loss = {"function": kind, "source": source, "eps": 1e-3, "weight": W4,
                        "ignore_index": 2, "per": "batch" if whole else "sample"}
                if kind == "tversky":
                    loss.update(alpha=.3, beta=.8)
                case(f"{kind}, ends in {head}, per batch {whole}", s, loss, want,
                     head=head)
        case(f"{kind} of values", s, {"function": kind},
             lambda y, t, k=kind: overlap(y, t, torch.ones(t.shape[:-1]), k),
             labels=False, head="softmax")
        case(f"{kind} of a mask", (3, 7, 6, 1), {"function": kind},
             lambda y, t, k=kind: overlap(y, one_hot(t, 1), torch.ones(t.shape), k),
             head="sigmoid")


def focal_cases():
    s = (3, 5, 2, 4)

    def of_classes(y, t, gamma, w, ignore):
        log_p = F.log_softmax(y, -1)
        at = log_p.gather(-1, t.clamp(min=0)[..., None])[..., 0]
        loss = -w[t.clamp(min=0)] * (1 - at.exp()) ** gamma * at
        return loss[t != ignore].mean()

    def of_sigmoids(y, t, gamma, alpha):
        p = torch.sigmoid(y)
        right = p * t + (1 - p) * (1 - t)
        loss = F.binary_cross_entropy_with_logits(y, t, reduction="none")
        return ((alpha * t + (1 - alpha) * (1 - t)) * (1 - right) ** gamma * loss).mean()

    case("focal of classes", s, {"function": "Focal"},
         lambda y, t: of_classes(torch.log(y), t, 2, V4 * 0 + 1, -9), head="softmax")
    case("focal, gamma, weights, ignoring", s,
         {"function": "focal", "gamma": 1.3, "weight": W4, "ignore_index": 3,
          "alpha": 0.5},
         lambda y, t: 0.5 * of_classes(y, t, 1.3, V4, 3))
    case("focal of a mask", (3, 8, 5, 1), {"function": "focal", "alpha": 0.25},
         lambda y, t: of_sigmoids(torch.log(y / (1 - y)), one_hot(t, 1), 2, .25),
         head="sigmoid")
    case("focal of sigmoids", s, {"function": "focal", "source": "sigmoid",
                                  "alpha": 0.3, "gamma": 0.5},
         lambda y, t: of_sigmoids(y, t, .5, .3), labels=False)


def lovasz_steps(right):
    """The contribution of each error to 1 - IoU, errors in decreasing order."""
    all_ = right.sum()
    both = all_ - right.cumsum(0)
    union = all_ + (1 - right).cumsum(0)
    iou = 1 - both / union
    return torch.cat([iou[:1], iou[1:] - iou[:-1]])


def lovasz(errors, right):
    errors, order = torch.sort(errors, descending=True)
    return torch.dot(errors, lovasz_steps(right[order]))


def lovasz_cases():
    def softmax(p, t, ignore=None):
        each = []
        for one, of in zip(p, t):
            one, of = one.reshape(-1, one.shape[-1]), of.reshape(-1)
            if ignore is not None:
                one, of = one[of != ignore], of[of != ignore]
            each.append(torch.stack([
                lovasz(((of == j).double() - one[:, j]).abs(), (of == j).double())
                for j in range(one.shape[-1]) if (of == j).any()]).mean())
        return torch.stack(each).mean()

    def hinge(y, t):
        each = [lovasz((1 - one.reshape(-1) * (2. * of.reshape(-1) - 1)).clamp(min=0),
                       of.reshape(-1).double()) for one, of in zip(y, t)]
        return torch.stack(each).mean()

    case("lovasz", (3, 9, 4, 4), "Lovasz", softmax, head="softmax")
    case("lovasz of few positions, ignoring", (4, 7, 5),
         {"function": "lovasz", "source": "softmax", "ignore_index": 1},
         lambda y, t: softmax(F.softmax(y, -1), t, 1))
    case("lovasz hinge", (3, 9, 5, 1), "lovasz",
         lambda y, t: hinge(torch.log(y / (1 - y)), t), head="sigmoid")


def sum_cases():
    s = (3, 5, 4, 4)
    case("a sum", s, [{"function": "cross_entropy", "factor": 0.5},
                      {"function": "dice", "factor": 2}],
         lambda y, t: 0.5 * F.nll_loss(first(torch.log(y)), t) +
         2 * overlap(y, one_hot(t, 4), torch.ones(t.shape), "dice"), head="softmax")


# ---- running ----

def compare(one, path):
    key, name, shape, loss, want, labels, head, x, t = one
    v = torch.tensor(x, requires_grad=True)
    y = want(ends(v, head), torch.tensor(t))
    y.backward()
    dx = np.fromfile(f"{path}/{key}.dx").reshape(shape)
    g = v.grad.numpy()
    far = np.abs(dx - g).max() / np.abs(g).max()
    got = np.fromfile(f"{path}/{key}.loss")[0]
    y = y.item()
    good = abs(got - y) <= 1e-9 * max(abs(y), 1e-3) and far <= 1e-9
    complaint = f"loss {got:.12g}, want {y:.12g}; gradient {far:.3g} of the largest off"
    result(name, unless(good, complaint))


def main():
    for make in (class_cases, point_cases, more_point_cases, margin_cases, overlap_cases, focal_cases, lovasz_cases,
                 sum_cases):
        make()
    with tempfile.TemporaryDirectory() as path:
        with open(f"{path}/cases", "w") as f:
            for key, name, shape, loss, want, labels, head, x, t in CASES:
                f.write(f"{key} {int(labels)} {head} {'x'.join(map(str, shape))} "
                        f"{json.dumps(loss)}\n")
                x.astype(np.float64).tofile(f"{path}/{key}.x")
                t.astype(np.int32 if labels else np.float64).tofile(f"{path}/{key}.t")
        subprocess.run([f"{BOTTOM}/tests/peer/loss_run", path], check=True)
        for one in CASES:
            compare(one, path)
    finish()


main()
