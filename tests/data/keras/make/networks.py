# networks.py - small networks that together use every Keras layer that the toolkit supports.
# Each function takes the layers module and Model, and returns a model.
#
# SPDX-License-Identifier: Apache-2.0
# Copyright the dnn-toolkit authors

NETWORKS = []


def network(keras=(2, 3), train=False, batch=2, k2="h5", k3="h5"):
    """keras: versions to use.  train: also store a training step (outputs, gradients, moving
    averages); only for networks without noise.  k2, k3: formats of weights to store."""

    def keep(function):
        formats = {2: k2.split(), 3: k3.split()}
        NETWORKS.append((function, keras, train, batch, formats))
        return function

    return keep


# ---- convolutions ----


@network(train=True, k3="weights.h5")
def conv2d_paddings(K, L):
    x = i = L.Input((9, 8, 3), name="image")
    x = L.Conv2D(4, 3, padding="same", name="same")(x)
    x = L.Conv2D(5, (2, 4), strides=2, padding="same", name="even_stride")(x)
    x = L.Conv2D(4, 2, padding="valid", use_bias=False, name="valid")(x)
    x = L.Conv2D(3, 2, dilation_rate=(2, 1), padding="same", name="dilated")(x)
    return K.Model(i, x, name="conv2d_paddings")


@network(k2="weights.h5", k3="weights.h5")
def conv2d_strides(K, L):
    return K.Sequential(
        [
            L.Input((11, 10, 2)),
            L.Conv2D(4, 4, strides=(3, 2), padding="same", activation="relu"),
            L.Conv2D(4, (3, 2), strides=(1, 2), padding="valid", activation="tanh"),
            L.Conv2D(6, 1, groups=2, activation="sigmoid"),
            L.Conv2D(6, (2, 3), groups=3, padding="same"),
        ],
        name="conv2d_strides",
    )


@network(keras=(2,), train=True)
def conv1d(K, L):
    x = i = L.Input((17, 3), name="signal")
    x = L.Conv1D(4, 3, padding="causal", dilation_rate=2, name="causal")(x)
    x = L.Conv1D(4, 4, strides=2, padding="same", name="same")(x)
    x = L.Conv1D(4, 2, strides=2, padding="causal", name="causal_stride")(x)
    x = L.Conv1D(3, 2, groups=1, name="valid")(x)
    return K.Model(i, x, name="conv1d")


@network(keras=(3,), train=True, k3="weights.h5")
def conv3d(K, L):
    x = i = L.Input((6, 7, 5, 2), name="volume")
    x = L.Conv3D(3, (3, 2, 3), padding="same", name="same")(x)
    x = L.Conv3D(3, 2, strides=(2, 1, 2), padding="same", name="stride")(x)
    x = L.Conv3D(2, 2, dilation_rate=(1, 2, 1), name="dilated")(x)
    return K.Model(i, x, name="conv3d")


@network(train=True, k3="weights.h5")
def conv_transpose(K, L):
    x = i = L.Input((3, 4, 3), name="image")
    x = L.Conv2DTranspose(4, 3, strides=2, padding="same", name="same")(x)
    x = L.Conv2DTranspose(3, 2, strides=2, padding="valid", name="valid")(x)
    x = L.Conv2D(3, 5, strides=5, name="shrink")(x)
    x = L.Conv2DTranspose(2, (4, 2), strides=(3, 2), padding="same", name="even")(x)
    x = L.Conv2DTranspose(2, (1, 2), strides=(2, 3), padding="valid", name="gaps")(x)
    return K.Model(i, x, name="conv_transpose")


@network(keras=(3,))
def conv_transpose_pads(K, L):
    x = i = L.Input((3, 4, 2), name="image")
    x = L.Conv2DTranspose(
        3, 3, strides=2, padding="same", output_padding=1, name="out1"
    )(x)
    x = L.Conv2DTranspose(
        3, 4, strides=3, padding="valid", output_padding=(0, 2), name="out2"
    )(x)
    return K.Model(i, x, name="conv_transpose_pads")


@network(keras=(3,), k3="weights.h5")
def conv_transpose_1d_3d(K, L):
    a = L.Input((5, 2), name="signal")
    b = L.Input((2, 3, 2, 2), name="volume")
    x = L.Conv1DTranspose(3, 4, strides=2, padding="same", name="signal_same")(a)
    x = L.Conv1DTranspose(2, 3, strides=2, padding="valid", name="signal_valid")(x)
    y = L.Conv3DTranspose(2, 3, strides=2, padding="same", name="volume_same")(b)
    y = L.Conv3DTranspose(
        2, (2, 1, 2), strides=(1, 2, 1), padding="valid", name="volume_valid"
    )(y)
    return K.Model([a, b], [x, y], name="conv_transpose_1d_3d")


@network(train=True, k3="weights.h5")
def separable(K, L):
    x = i = L.Input((8, 8, 3), name="image")
    x = L.DepthwiseConv2D(3, padding="same", depth_multiplier=2, name="depthwise")(x)
    x = L.DepthwiseConv2D(2, strides=2, use_bias=False, name="depthwise_stride")(x)
    x = L.SeparableConv2D(5, 3, padding="same", depth_multiplier=2, name="separable")(x)
    x = L.SeparableConv2D(4, 2, dilation_rate=2, activation="elu", name="dilated")(x)
    return K.Model(i, x, name="separable")


@network(keras=(3,), k3="weights.h5")
def separable_1d(K, L):
    x = i = L.Input((12, 3), name="signal")
    x = L.DepthwiseConv1D(3, padding="same", depth_multiplier=2, name="depthwise")(x)
    x = L.SeparableConv1D(4, 4, strides=2, padding="same", name="separable")(x)
    x = L.SeparableConv1D(4, 2, use_bias=False, name="plain")(x)
    return K.Model(i, x, name="separable_1d")


# ---- pools and sizes ----


@network(keras=(2,), train=True)
def pools_2d(K, L):
    x = i = L.Input((13, 12, 2), name="image")
    a = L.MaxPooling2D(3, strides=2, padding="same")(x)
    b = L.AveragePooling2D(3, strides=2, padding="same")(x)
    x = L.Concatenate()([a, b])
    x = L.Conv2D(4, 1, name="mix")(x)
    a = L.MaxPooling2D((2, 3), strides=(1, 2))(x)
    b = L.AveragePooling2D((2, 3), strides=(1, 2))(x)
    return K.Model(
        i,
        [a, b, L.GlobalMaxPooling2D()(x), L.GlobalAveragePooling2D(keepdims=True)(x)],
        name="pools_2d",
    )


@network(keras=(3,))
def pools_1d_3d(K, L):
    a = L.Input((11, 3), name="signal")
    b = L.Input((5, 6, 4, 2), name="volume")
    x = L.MaxPooling1D(2, padding="same")(a)
    x = L.AveragePooling1D(3, strides=2, padding="same")(x)
    y = L.MaxPooling3D(2, strides=1, padding="same")(b)
    y = L.AveragePooling3D((2, 3, 2), strides=(2, 2, 1), padding="same")(y)
    y = L.Conv3D(2, 1, name="mix")(y)
    return K.Model(
        [a, b],
        [
            L.GlobalMaxPooling1D(keepdims=True)(x),
            L.GlobalAveragePooling1D()(x),
            L.GlobalMaxPooling3D()(y),
            L.GlobalAveragePooling3D()(y),
            L.MaxPooling1D(2)(x),
            L.AveragePooling3D(2)(y),
        ],
        name="pools_1d_3d",
    )


@network(keras=(3,), train=True)
def sizes(K, L):
    x = i = L.Input((4, 3, 3), name="image")
    x = L.Conv2D(2, 1, name="mix")(x)
    a = L.UpSampling2D((2, 3), interpolation="bilinear", name="bilinear")(x)
    b = L.UpSampling2D((3, 2), name="nearest")(x)
    c = L.ZeroPadding2D(((1, 2), (0, 3)), name="pad")(x)
    d = L.Cropping2D(((1, 0), (1, 2)), name="crop")(a)
    return K.Model(i, [a, b, c, d], name="sizes")


@network(keras=(3,))
def sizes_1d_3d(K, L):
    a = L.Input((5, 2), name="signal")
    b = L.Input((3, 4, 2, 2), name="volume")
    x = L.UpSampling1D(3)(a)
    x = L.ZeroPadding1D((2, 1))(x)
    x = L.Conv1D(2, 3, name="mix1")(x)
    x = L.Cropping1D((1, 3))(x)
    y = L.UpSampling3D((2, 1, 2))(b)
    y = L.ZeroPadding3D(((1, 0), (0, 2), (1, 1)))(y)
    y = L.Conv3D(2, 2, name="mix3")(y)
    y = L.Cropping3D(((1, 1), (0, 2), (1, 0)))(y)
    return K.Model([a, b], [x, y], name="sizes_1d_3d")


@network(k3="weights.h5")
def crops(K, L):
    x = i = L.Input((9, 8, 1), name="image")
    x = L.Rescaling(1.0 / 127.5, offset=-1)(x)
    x = L.CenterCrop(6, 5)(x)
    x = L.Conv2D(3, 2, name="conv")(x)
    return K.Model(i, x, name="crops")


@network(keras=(3,))
def shapes(K, L):
    x = i = L.Input((4, 3, 2), name="image")
    x = L.Permute((3, 1, 2))(x)
    x = L.Reshape((-1, 6))(x)
    x = L.Dense(5, name="dense_3d")(x)
    y = L.Flatten()(x)
    y = L.Dense(3, activation="softmax", name="head")(y)
    return K.Model(i, [x, y], name="shapes")


# ---- norms ----


@network(train=True, batch=5, k3="weights.h5")
def batchnorm(K, L):
    x = i = L.Input((6, 5, 3), name="image")
    x = L.Conv2D(4, 3, use_bias=False, name="conv")(x)
    x = L.BatchNormalization(name="bn", momentum=0.9)(x)
    x = L.Activation("relu", name="act")(x)
    x = L.BatchNormalization(name="bn_no_scale", scale=False, epsilon=0.01)(x)
    x = L.Conv2D(3, 2, name="conv2")(x)
    x = L.BatchNormalization(name="bn_no_center", center=False, momentum=0.8)(x)
    x = L.Flatten(name="flat")(x)
    x = L.Dense(4, name="dense")(x)
    x = L.BatchNormalization(name="bn_flat", momentum=0.7)(x)
    return K.Model(i, x, name="batchnorm")


@network(train=True)
def batchnorm_1d_3d(K, L):
    a = L.Input((7, 3), name="signal")
    b = L.Input((3, 4, 2, 2), name="volume")
    x = L.BatchNormalization(name="bn1", momentum=0.9)(a)
    y = L.BatchNormalization(name="bn3", momentum=0.9)(b)
    return K.Model([a, b], [x, y], name="batchnorm_1d_3d")


@network(train=True, k2="weights.h5")
def other_norms(K, L):
    x = i = L.Input((5, 4, 6), name="image")
    x = L.LayerNormalization(name="ln")(x)
    x = L.Conv2D(8, 2, name="conv")(x)
    x = L.GroupNormalization(groups=4, name="gn")(x)
    x = L.LayerNormalization(axis=[1, 2, 3], center=False, epsilon=0.01, name="ln3")(x)
    x = L.GroupNormalization(groups=-1, scale=False, name="instance")(x)
    x = L.Dense(3, name="dense")(x)
    return K.Model(i, x, name="other_norms")


@network(keras=(3,))
def normalization(K, L):
    x = i = L.Input((4, 3), name="data")
    x = L.Normalization(mean=[0.1, 0.2, -0.3], variance=[1.5, 0.5, 2.0])(x)
    y = L.Normalization(mean=0.5, variance=2.0, axis=None)(x)
    y = L.Dense(2, name="dense")(y)
    return K.Model(i, [x, y], name="normalization")


# ---- activations ----

COMMON = (
    "linear relu sigmoid tanh softmax swish elu selu gelu softplus softsign "
    "hard_sigmoid exponential"
)


def acts(K, L, names, title):
    x = i = L.Input((6,), name="data")
    x = L.Dense(8, name="dense")(x)
    return K.Model(
        i, [L.Activation(n, name="act_" + n)(x) for n in names.split()], name=title
    )


@network(keras=(2,), train=True)
def activations_2(K, L):
    return acts(K, L, COMMON + " mish", "activations_2")


@network(keras=(3,), train=True)
def activations_3(K, L):
    more = " relu6 leaky_relu log_softmax silu hard_swish mish log_sigmoid"
    return acts(K, L, COMMON + more, "activations_3")


@network(train=True)
def activation_layers(K, L):
    x = i = L.Input((4, 5, 3), name="image")
    x = L.Conv2D(4, 2, name="conv")(x)
    out = [
        L.ReLU(max_value=0.8, negative_slope=0.1, threshold=0.1)(x),
        L.ReLU()(x),
        L.LeakyReLU()(x),
        L.ELU(alpha=0.7)(x),
        L.Softmax(axis=-1)(x),
        L.Softmax(axis=1)(x),
        L.PReLU(name="prelu")(x),
        L.PReLU(shared_axes=[1, 2], name="prelu_shared")(x),
    ]
    return K.Model(i, out, name="activation_layers")


# ---- joining ----


@network(keras=(2,), train=True)
def merges(K, L):
    a = L.Input((4, 3), name="left")
    b = L.Input((4, 3), name="right")
    x = L.Dense(3, name="dense_left")(a)
    y = L.Dense(3, name="dense_right")(b)
    out = [
        L.Add()([x, y, a]),
        L.Subtract()([x, y]),
        L.Multiply()([x, y, b]),
        L.Average()([x, y]),
        L.Maximum()([x, y]),
        L.Minimum()([x, y]),
        L.Concatenate()([x, y]),
        L.Concatenate(axis=1)([y, x]),
    ]
    return K.Model([a, b], out, name="merges")


@network(train=True, k3="weights.h5")
def shared(K, L):
    a = L.Input((6, 6, 2), name="left")
    b = L.Input((6, 6, 2), name="right")
    conv = L.Conv2D(3, 3, activation="relu", name="shared_conv")
    head = L.Dense(4, name="shared_dense")
    x = head(L.Flatten(name="flat_left")(conv(a)))
    y = head(L.Flatten(name="flat_right")(conv(b)))
    z = L.Dense(2, name="out")(L.Concatenate(name="join")([x, y]))
    return K.Model([a, b], z, name="shared")


@network(train=True, k2="h5 weights.h5", k3="h5 weights.h5 keras")
def nested(K, L):
    ii = L.Input((6, 6, 3), name="inner_in")
    xx = L.Conv2D(3, 3, padding="same", name="conv")(ii)
    xx = L.BatchNormalization(name="bn", momentum=0.9)(xx)
    inner = K.Model(ii, [xx, L.ReLU(name="relu")(xx)], name="inner")
    tail = K.Sequential(
        [L.Input((6, 6, 3)), L.Conv2D(4, 2, name="conv"), L.Flatten(name="flat")],
        name="tail",
    )
    i = L.Input((6, 6, 3), name="image")
    a, b = inner(i)
    c, d = inner(b)
    x = tail(L.Add(name="add")([a, d]))
    y = L.Dense(3, name="dense")(x)
    return K.Model(i, [y, c], name="outer")


@network()
def deep_nested(K, L):
    def block(name, filters):
        j = L.Input((None, None, filters), name=name + "_in")
        u = L.Conv2D(filters, 3, padding="same", name=name + "_conv_a")(j)
        u = L.PReLU(shared_axes=[1, 2], name=name + "_prelu")(u)
        u = L.SeparableConv2D(filters, 3, padding="same", name=name + "_conv_b")(u)
        return K.Model(j, L.Add(name=name + "_add")([j, u]), name=name)

    j = L.Input((8, 8, 3), name="stage_in")
    u = block("block_one", 3)(j)
    u = L.Conv2D(4, 2, strides=2, name="down")(u)
    u = block("block_two", 4)(u)
    stage = K.Model(j, u, name="stage")
    return K.Sequential(
        [L.Input((8, 8, 3)), stage, L.GlobalAveragePooling2D(), L.Dense(2)],
        name="deep_nested",
    )


# ---- whole networks ----


@network(k2="h5 weights.h5", k3="weights.h5 keras")
def auto_names(K, L):
    return K.Sequential(
        [
            L.Input((8, 8, 1)),
            L.Conv2D(3, 3, activation="relu"),
            L.Conv2D(4, 3, activation="relu"),
            L.Dropout(0.5),
            L.BatchNormalization(),
            L.Flatten(),
            L.Dense(6, activation="relu"),
            L.Dense(3, activation="softmax"),
        ]
    )


@network(keras=(3,), k3="weights.h5")
def noises(K, L):
    x = i = L.Input((6, 5, 4), name="image")
    x = L.Conv2D(4, 2, name="conv", kernel_regularizer="l2")(x)
    x = L.Dropout(0.3)(x)
    x = L.SpatialDropout2D(0.2)(x)
    x = L.GaussianNoise(0.1)(x)
    x = L.GaussianDropout(0.2)(x)
    x = L.AlphaDropout(0.1)(x)
    x = L.ActivityRegularization(l1=0.01, l2=0.02)(x)
    y = L.Reshape((20, 4))(x)
    y = L.SpatialDropout1D(0.2)(y)
    y = L.Dense(2, name="dense", kernel_constraint="non_neg")(y)
    z = L.Reshape((2, 5, 2, 4))(x)
    z = L.SpatialDropout3D(0.2)(z)
    return K.Model(i, [y, z], name="noises")


@network(train=True, k3="keras")
def unet(K, L):
    def block(x, n, name):
        x = L.Conv2D(n, 3, padding="same", use_bias=False, name=name)(x)
        x = L.BatchNormalization(name=name + "_bn")(x)
        return L.Activation("relu", name=name + "_act")(x)

    i = L.Input((None, None, 1), name="image")
    d1 = block(i, 2, "down1")
    d2 = block(L.MaxPooling2D(name="pool1")(d1), 4, "down2")
    x = block(L.MaxPooling2D(name="pool2")(d2), 6, "bottom")
    x = L.Conv2DTranspose(4, 2, strides=2, padding="same", name="up2")(x)
    x = block(L.Concatenate(name="join2")([d2, x]), 4, "left2")
    x = L.UpSampling2D(2, interpolation="bilinear", name="up1")(x)
    x = block(L.Concatenate(name="join1")([d1, x]), 2, "left1")
    x = L.Conv2D(2, 1, activation="softmax", name="classes")(x)
    return K.Model(i, x, name="unet")


@network(keras=(2,), train=True)
def frozen(K, L):
    x = i = L.Input((5, 5, 2), name="image")
    x = L.Conv2D(3, 2, name="conv_frozen", trainable=False)(x)
    x = L.BatchNormalization(name="bn_frozen", trainable=False)(x)
    x = L.Conv2D(3, 2, name="conv")(x)
    x = L.BatchNormalization(name="bn", momentum=0.9)(x)
    return K.Model(i, x, name="frozen")
