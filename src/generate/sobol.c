/* sobol.c - the Sobol sequence: points that fill a cube evenly.
 *
 * Each dimension has a primitive polynomial over {0, 1} and as many initial direction
 * numbers as its degree; a recurrence gives the others.  The table contains those that
 * S. Joe and F. Y. Kuo published ("Constructing Sobol sequences with better
 * two-dimensional projections", 2008) for dimensions 2 to 64; the first dimension needs
 * none.
 *
 * SPDX-License-Identifier: Apache-2.0
 * Copyright the dnn-toolkit authors
 */
#include "generate/generate_impl.h"

enum { BITS = 32, MAX_DEGREE = 9 };

/* Coefficients of the polynomial as bits, the highest power first; then m_1, m_2 ... */
static const struct {
    uint16_t poly, first[MAX_DEGREE];
} dimension[DNN_SOBOL_DIMS - 1] = {
    {3,   {1}                                },
    {7,   {1, 3}                             },
    {11,  {1, 3, 1}                          },
    {13,  {1, 1, 1}                          },
    {19,  {1, 1, 3, 3}                       },
    {25,  {1, 3, 5, 13}                      },
    {37,  {1, 1, 5, 5, 17}                   },
    {41,  {1, 1, 5, 5, 5}                    },
    {47,  {1, 1, 7, 11, 19}                  },
    {55,  {1, 1, 5, 1, 1}                    },
    {59,  {1, 1, 1, 3, 11}                   },
    {61,  {1, 3, 5, 5, 31}                   },
    {67,  {1, 3, 3, 9, 7, 49}                },
    {91,  {1, 1, 1, 15, 21, 21}              },
    {97,  {1, 3, 1, 13, 27, 49}              },
    {103, {1, 1, 1, 15, 7, 5}                },
    {109, {1, 3, 1, 15, 13, 25}              },
    {115, {1, 1, 5, 5, 19, 61}               },
    {131, {1, 3, 7, 11, 23, 15, 103}         },
    {137, {1, 3, 7, 13, 13, 15, 69}          },
    {143, {1, 1, 3, 13, 7, 35, 63}           },
    {145, {1, 3, 5, 9, 1, 25, 53}            },
    {157, {1, 3, 1, 13, 9, 35, 107}          },
    {167, {1, 3, 1, 5, 27, 61, 31}           },
    {171, {1, 1, 5, 11, 19, 41, 61}          },
    {185, {1, 3, 5, 3, 3, 13, 69}            },
    {191, {1, 1, 7, 13, 1, 19, 1}            },
    {193, {1, 3, 7, 5, 13, 19, 59}           },
    {203, {1, 1, 3, 9, 25, 29, 41}           },
    {211, {1, 3, 5, 13, 23, 1, 55}           },
    {213, {1, 3, 7, 3, 13, 59, 17}           },
    {229, {1, 3, 1, 3, 5, 53, 69}            },
    {239, {1, 1, 5, 5, 23, 33, 13}           },
    {241, {1, 1, 7, 7, 1, 61, 123}           },
    {247, {1, 1, 7, 9, 13, 61, 49}           },
    {253, {1, 3, 3, 5, 3, 55, 33}            },
    {285, {1, 3, 1, 15, 31, 13, 49, 245}     },
    {299, {1, 3, 5, 15, 31, 59, 63, 97}      },
    {301, {1, 3, 1, 11, 11, 11, 77, 249}     },
    {333, {1, 3, 1, 11, 27, 43, 71, 9}       },
    {351, {1, 1, 7, 15, 21, 11, 81, 45}      },
    {355, {1, 3, 7, 3, 25, 31, 65, 79}       },
    {357, {1, 3, 1, 1, 19, 11, 3, 205}       },
    {361, {1, 1, 5, 9, 19, 21, 29, 157}      },
    {369, {1, 3, 7, 11, 1, 33, 89, 185}      },
    {391, {1, 3, 3, 3, 15, 9, 79, 71}        },
    {397, {1, 3, 7, 11, 15, 39, 119, 27}     },
    {425, {1, 1, 3, 1, 11, 31, 97, 225}      },
    {451, {1, 1, 1, 3, 23, 43, 57, 177}      },
    {463, {1, 3, 7, 7, 17, 17, 37, 71}       },
    {487, {1, 3, 1, 5, 27, 63, 123, 213}     },
    {501, {1, 1, 3, 5, 11, 43, 53, 133}      },
    {529, {1, 3, 5, 5, 29, 17, 47, 173, 479} },
    {539, {1, 3, 3, 11, 3, 1, 109, 9, 69}    },
    {545, {1, 1, 1, 5, 17, 39, 23, 5, 343}   },
    {557, {1, 3, 1, 5, 25, 15, 31, 103, 499} },
    {563, {1, 1, 1, 11, 11, 17, 63, 105, 183}},
    {601, {1, 1, 5, 11, 9, 29, 97, 231, 363} },
    {607, {1, 1, 5, 15, 19, 45, 41, 7, 383}  },
    {617, {1, 3, 7, 7, 31, 19, 83, 137, 221} },
    {623, {1, 1, 1, 3, 23, 15, 111, 223, 83} },
    {631, {1, 1, 5, 13, 31, 15, 55, 25, 161} },
    {637, {1, 1, 3, 13, 25, 47, 39, 87, 257} },
};

/* Direction number v_k = m_k 2^(32 - k) for k = 1 ... 32, with
 * m_k = 2 c_1 m_(k-1) ^ 4 c_2 m_(k-2) ^ ... ^ 2^s m_(k-s) ^ m_(k-s). */
static void directions(int dim, uint32_t v[BITS])
{
    if (dim == 0) {
        for (int k = 0; k < BITS; k++)
            v[k] = 1u << (BITS - 1 - k);
        return;
    }
    const uint32_t poly = dimension[dim - 1].poly;
    int degree = 0;
    while (poly >> (degree + 1) != 0)
        degree++;

    for (int k = 0; k < BITS; k++) {
        if (k < degree) {
            v[k] = (uint32_t)dimension[dim - 1].first[k] << (BITS - 1 - k);
            continue;
        }
        v[k] = v[k - degree] ^ (v[k - degree] >> degree);
        for (int j = 1; j < degree; j++)
            if ((poly >> (degree - j) & 1) != 0) v[k] ^= v[k - j];
    }
}

double dnn_sobol(int dim, uint32_t index)
{
    const uint32_t gray = index ^ (index >> 1);
    uint32_t v[BITS], x = 0;

    directions(dim, v);
    for (int k = 0; k < BITS; k++)
        if ((gray >> k & 1) != 0) x ^= v[k];
    return x * 0x1p-32;
}
