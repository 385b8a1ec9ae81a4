/* wino_transform.h - the Winograd transforms of inputs, outputs and taps, for whole
 * vectors (see wino_impl.h); the including file defines vec and INLINE.
 *
 * SPDX-License-Identifier: Apache-2.0
 * Copyright the dnn-toolkit authors
 */

/* Bt: six neighbouring inputs. */
INLINE void wino_in(const vec d[6], vec v[6])
{
    vec a = d[4] - DNN_WINO_B2 * d[2], odd_a = d[3] - DNN_WINO_B2 * d[1];
    vec b = d[4] - DNN_WINO_A2 * d[2], odd_b = d[3] - DNN_WINO_A2 * d[1];

    v[0] =
        DNN_WINO_A2 * DNN_WINO_B2 * d[0] + (d[4] - (DNN_WINO_A2 + DNN_WINO_B2) * d[2]);
    v[1] = a + DNN_WINO_A * odd_a;
    v[2] = a - DNN_WINO_A * odd_a;
    v[3] = b + DNN_WINO_B * odd_b;
    v[4] = b - DNN_WINO_B * odd_b;
    v[5] =
        DNN_WINO_A2 * DNN_WINO_B2 * d[1] + (d[5] - (DNN_WINO_A2 + DNN_WINO_B2) * d[3]);
}

/* At: four neighbouring outputs from the six sums. */
INLINE void wino_out(const vec m[6], vec y[4])
{
    vec a = m[1] + m[2], odd_a = DNN_WINO_A * (m[1] - m[2]);
    vec b = m[3] + m[4], odd_b = DNN_WINO_B * (m[3] - m[4]);

    y[0] = m[0] + a + b;
    y[1] = odd_a + odd_b;
    y[2] = DNN_WINO_A2 * a + DNN_WINO_B2 * b;
    y[3] = DNN_WINO_A2 * odd_a + DNN_WINO_B2 * odd_b + m[5];
}

/* G: three taps. */
INLINE void wino_taps(const vec g[3], vec u[6])
{
    vec a = DNN_WINO_GA * (g[0] + DNN_WINO_A2 * g[2]);
    vec b = DNN_WINO_GB * (g[0] + DNN_WINO_B2 * g[2]);

    u[0] = DNN_WINO_G0 * g[0];
    u[1] = a + DNN_WINO_GA * DNN_WINO_A * g[1];
    u[2] = a - DNN_WINO_GA * DNN_WINO_A * g[1];
    u[3] = b + DNN_WINO_GB * DNN_WINO_B * g[1];
    u[4] = b - DNN_WINO_GB * DNN_WINO_B * g[1];
    u[5] = g[2];
}
