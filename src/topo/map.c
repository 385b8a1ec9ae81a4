/* map.c - map ranks to cores.
 *
 * A rank with its own mask gets all of it.  Ranks that share one mask divide its cores
 * evenly (numbers differ by at most one), because the slowest rank determines the
 * speed; among these divisions the one that crosses the fewest package and NUMA
 * boundaries is used.
 *
 * SPDX-License-Identifier: Apache-2.0
 * Copyright the dnn-toolkit authors
 */
#include "topo/topo_impl.h"

#include "base/mem.h"

#include <string.h>

/* The ranks of one node. */
struct node {
    const struct dnn_topo *topo;
    int n, me;
    const struct dnn_topo_request **request; /* owned array [n]                    */
    struct dnn_topo_set *pus;                /* owned [n]: the result              */
    int *turn; /* owned [n]: index among the ranks on the same single core   */
};

/* Some cores of a machine, in order of locality. */
struct cores {
    int n;
    int *at;    /* owned [n]: indices into topo->core                        */
    int *cross; /* owned [n]: total cost of boundaries before this core      */
};

/* Crossing a package boundary costs more than all NUMA boundaries in it. */
enum { PACKAGE_COST = 1000, NUMA_COST = 1 };

static struct cores cores_in(const struct dnn_topo *topo,
                             const struct dnn_topo_set *mask)
{
    struct cores c = {0};
    size_t bytes = (size_t)(topo->ncores > 0 ? topo->ncores : 1) * sizeof *c.at;

    c.at = dnn_alloc(bytes);
    c.cross = dnn_alloc(bytes);
    for (int i = 0; i < topo->ncores; i++) {
        if (!dnn_topo_intersect(&topo->core[i].pus, mask, NULL)) continue;
        if (c.n > 0) {
            const struct dnn_topo_core *previous = &topo->core[c.at[c.n - 1]];
            const struct dnn_topo_core *next = &topo->core[i];

            c.cross[c.n] = c.cross[c.n - 1] +
                           (previous->package != next->package ? PACKAGE_COST : 0) +
                           (previous->numa != next->numa ? NUMA_COST : 0);
        }
        c.at[c.n++] = i;
    }
    return c;
}

static void free_cores(struct cores *c)
{
    dnn_free(c->at);
    dnn_free(c->cross);
}

/* Cost of the boundaries between the cores [from, from + n). */
static int cost(const struct cores *c, int from, int n)
{
    return n < 2 ? 0 : c->cross[from + n - 1] - c->cross[from];
}

/* Divide c into k runs of q or q + 1 cores with the lowest total cost, by dynamic
 * programming: cheapest[j][x] is the lowest cost of the runs from j on if x of the
 * first j runs have an extra core.  If costs are equal, earlier ranks get the extra
 * core. */
static void divide(const struct cores *c, int k, int *size)
{
    int q = c->n / k, extra = c->n % k, row = extra + 1;
    int *cheapest = dnn_alloc((size_t)(k + 1) * (size_t)row * sizeof *cheapest);

    /* From the last run to the first; then the sizes are chosen from the first on. */
    for (int j = k - 1; j >= 0; j--)
        for (int x = 0; x <= extra; x++) {
            int from = j * q + x, best = -1;

            if (x > j || extra - x > k - j) continue; /* not reachable */
            if (extra - x <= k - j - 1)
                best = cost(c, from, q) + cheapest[(j + 1) * row + x];
            if (x < extra) {
                int more = cost(c, from, q + 1) + cheapest[(j + 1) * row + x + 1];

                if (best < 0 || more <= best) best = more;
            }
            cheapest[j * row + x] = best;
        }
    for (int j = 0, x = 0; j < k; j++) {
        int from = j * q + x;
        bool more =
            x < extra && cost(c, from, q + 1) + cheapest[(j + 1) * row + x + 1] ==
                             cheapest[j * row + x];

        size[j] = q + (more ? 1 : 0);
        x += more ? 1 : 0;
    }
    dnn_free(cheapest);
}

/* Add the PUs of core number at that are in the mask. */
static void add_core(const struct dnn_topo *topo, int at,
                     const struct dnn_topo_set *mask, struct dnn_topo_set *pus)
{
    struct dnn_topo_set both;

    dnn_topo_intersect(&topo->core[at].pus, mask, &both);
    for (size_t w = 0; w < sizeof both.word / sizeof *both.word; w++)
        pus->word[w] |= both.word[w];
}

/* Divide one mask among the k ranks ranks[0..k). */
static void split(struct node *node, const int *ranks, int k)
{
    const struct dnn_topo_set *mask = &node->request[ranks[0]]->granted;
    struct cores c = cores_in(node->topo, mask);

    if (c.n < k) {
        for (int i = 0; i < k; i++) {
            int mine = (int)((int64_t)i * c.n / k);
            int first = (int)(((int64_t)mine * k + c.n - 1) / c.n); /* on this core */

            add_core(node->topo, c.at[mine], mask, &node->pus[ranks[i]]);
            node->turn[ranks[i]] = i - first;
        }
    } else {
        int *size = dnn_alloc((size_t)k * sizeof *size);

        divide(&c, k, size);
        for (int i = 0, at = 0; i < k; i++)
            for (int end = at + size[i]; at < end; at++)
                add_core(node->topo, c.at[at], mask, &node->pus[ranks[i]]);
        dnn_free(size);
    }
    free_cores(&c);
}

/* Set the PUs of all ranks of the node. */
static void share(struct node *node)
{
    int *ranks = dnn_alloc((size_t)node->n * sizeof *ranks);
    bool *done = dnn_alloc((size_t)node->n * sizeof *done);

    for (int r = 0; r < node->n; r++) {
        int k = 0;

        if (done[r]) continue;
        if (node->request[r]->policy != DNN_BIND_AUTO) {
            node->pus[r] = node->request[r]->granted;
            continue;
        }
        for (int s = r; s < node->n; s++)
            if (node->request[s]->policy == DNN_BIND_AUTO &&
                dnn_topo_same(&node->request[s]->granted, &node->request[r]->granted)) {
                ranks[k++] = s;
                done[s] = true;
            }
        split(node, ranks, k);
    }
    dnn_free(ranks);
    dnn_free(done);
}

static void fill_memory(const struct dnn_topo *topo, struct dnn_place *p)
{
    hwloc_obj_t numa = NULL;
    hwloc_obj_t machine = hwloc_get_root_obj(topo->hw);

    while ((numa = hwloc_get_next_obj_by_type(topo->hw, HWLOC_OBJ_NUMANODE, numa)) !=
           NULL) {
        struct dnn_topo_set near = {{0}};

        dnn_topo_from_bitmap(&near, numa->cpuset);
        if (!dnn_topo_intersect(&near, &p->pus, NULL)) continue;
        dnn_topo_add(&p->numas, (int)numa->os_index);
        p->local_memory += numa->attr->numanode.local_memory;
    }
    p->nnumas = dnn_topo_count(&p->numas);
    p->total_memory = machine->total_memory;
}

/* The number of threads; see enum dnn_topo_want. */
static int threads_for(const struct dnn_topo *topo,
                       const struct dnn_topo_request *request, const struct cores *c,
                       const struct dnn_topo_set *pus)
{
    int cores = 0;

    if (request->want == DNN_WANT_THREADS) return request->threads;
    if (request->want == DNN_WANT_CORES) return c->n;
    for (int cpus = 0; cores < c->n && cpus < request->threads; cores++) {
        struct dnn_topo_set both;

        dnn_topo_intersect(&topo->core[c->at[cores]].pus, pus, &both);
        cpus += dnn_topo_count(&both);
    }
    return cores;
}

/* Set one PU per thread: the first PU of each core, then the second ones if there are
 * more threads than cores, then from the beginning.  With fewer threads than cores, the
 * consecutive cores with the lowest cost are used. */
static void pin(const struct dnn_topo *topo, const struct cores *c, int turn,
                struct dnn_place *p)
{
    int used = p->threads < c->n ? p->threads : c->n, from = 0, n = 0;
    int *order = dnn_alloc(DNN_TOPO_PUS * sizeof *order);
    struct dnn_topo_set given = {{0}};

    for (int at = 1; at + used <= c->n; at++)
        if (cost(c, at, used) < cost(c, from, used)) from = at;
    for (bool more = true; more;) {
        more = false;
        for (int i = from; i < from + used; i++) {
            struct dnn_topo_set own;
            int pu = 0;

            dnn_topo_intersect(&topo->core[c->at[i]].pus, &p->pus, &own);
            while (pu < DNN_TOPO_PUS &&
                   (!dnn_topo_has(&own, pu) || dnn_topo_has(&given, pu)))
                pu++;
            if (pu == DNN_TOPO_PUS) continue;
            dnn_topo_add(&given, pu);
            order[n++] = pu;
            more = true;
        }
    }
    for (int t = 0; t < p->threads; t++)
        p->pu[t] = (int16_t)order[(t + turn) % n];
    dnn_free(order);
}

static void fill(const struct node *node, struct dnn_place *p)
{
    const struct dnn_topo *topo = node->topo;
    const struct dnn_topo_request *request = node->request[node->me];

    /* Clear all bytes, also padding, because places are sent as bytes. */
    memset(p, 0, sizeof *p);
    p->pus = node->pus[node->me];
    struct cores c = cores_in(topo, &p->pus);
    for (int i = 0; i < c.n; i++) {
        dnn_topo_add(&p->cores, c.at[i]);
        dnn_topo_add(&p->packages, topo->core[c.at[i]].package);
    }
    p->ncores = c.n;
    p->node_cores = topo->ncores;
    p->npackages = dnn_topo_count(&p->packages);
    p->package = p->npackages == 1 ? topo->core[c.at[0]].package : -1;
    fill_memory(topo, p);
    p->threads = threads_for(topo, request, &c, &p->pus);
    for (int t = 0; t < DNN_TOPO_THREADS; t++)
        p->pu[t] = -1;
    if (request->policy == DNN_BIND_AUTO) pin(topo, &c, node->turn[node->me], p);
    free_cores(&c);
}

/* Find the ranks on our host, and check their masks. */
static int gather(struct node *node, const struct dnn_topo_request *requests,
                  int nrequests, int me, struct dnn_err *err)
{
    struct dnn_topo_set all = {{0}};

    dnn_topo_from_bitmap(&all, hwloc_topology_get_topology_cpuset(node->topo->hw));
    for (int r = 0; r < nrequests; r++) {
        if (strcmp(requests[r].host, requests[me].host) != 0) continue;
        if (!dnn_topo_intersect(&requests[r].granted, &all, NULL))
            return dnn_fail(
                err, DNN_EUSAGE,
                "rank %d on %s: none of its granted CPUs exists on this machine", r,
                requests[r].host);
        if (r == me) node->me = node->n;
        node->request[node->n++] = &requests[r];
    }
    return 0;
}

int dnn_topo_map(const struct dnn_topo *topo, const struct dnn_topo_request *requests,
                 int nrequests, int me, struct dnn_place *place, struct dnn_err *err)
{
    struct node node = {.topo = topo};
    size_t n = (size_t)nrequests;

    node.request = dnn_alloc(n * sizeof *node.request);
    node.pus = dnn_alloc(n * sizeof *node.pus);
    node.turn = dnn_alloc(n * sizeof *node.turn);
    int rc = gather(&node, requests, nrequests, me, err);
    if (rc == 0) {
        int *gpu = dnn_alloc(n * sizeof *gpu);

        share(&node);
        fill(&node, place);
        dnn_topo_share_gpus(topo, node.n, node.request, node.pus, gpu);
        place->gpu = gpu[node.me];
        place->gpu_on_node = place->gpu < 0 ? -1 : requests[me].gpu[place->gpu];
        dnn_free(gpu);
    }
    dnn_free(node.request);
    dnn_free(node.pus);
    dnn_free(node.turn);
    return rc;
}
