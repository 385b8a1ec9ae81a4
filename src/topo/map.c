/* map.c - topology and requests in, places out; touches nothing.
 *
 * Ranks with masks of their own stay in them.  Ranks that share one mask divide
 * its cores evenly, to within one core, because ranks that wait for each other
 * are as fast as the smallest; among the even divisions it takes the one that
 * crosses the fewest packages and NUMA nodes.
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
    struct dnn_topo_set *pus;                /* owned [n]: the answer              */
    int *turn; /* owned [n]: of ranks on the same single core, which one     */
};

/* Some cores of a machine, in its order. */
struct cores {
    int n;
    int *at;    /* owned [n]: indices into topo->core                        */
    int *cross; /* owned [n]: cost of boundaries up to this core             */
};

/* Leaving a package costs more than leaving all of its NUMA nodes. */
enum { PACKAGE_COST = 1000, NUMA_COST = 1 };

static struct cores cores_in(const struct dnn_topo *topo,
                             const struct dnn_topo_set *mask)
{
    struct cores c = {0};
    size_t bytes = (size_t)(topo->ncores > 0 ? topo->ncores : 1) * sizeof *c.at;

    c.at = dnn_alloc(bytes);
    c.cross = dnn_alloc(bytes);
    for (int i = 0; i < topo->ncores; i++) {
        if (!dnn_topo_meet(&topo->core[i].pus, mask, NULL)) continue;
        if (c.n > 0) {
            const struct dnn_topo_core *was = &topo->core[c.at[c.n - 1]];
            const struct dnn_topo_core *now = &topo->core[i];

            c.cross[c.n] = c.cross[c.n - 1] +
                           (was->package != now->package ? PACKAGE_COST : 0) +
                           (was->numa != now->numa ? NUMA_COST : 0);
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

/* How many boundaries the cores [from, from + n) span, weighted. */
static int cost(const struct cores *c, int from, int n)
{
    return n < 2 ? 0 : c->cross[from + n - 1] - c->cross[from];
}

/* Cut c into k runs of q or q + 1 cores such that the runs cross as little as
 * possible: cheapest[j][x] is the best cost of the first j runs if x of them
 * got an extra core.  Where two are equal, earlier ranks get the extra. */
static void cut(const struct cores *c, int k, int *size)
{
    int q = c->n / k, extra = c->n % k, row = extra + 1;
    int *cheapest = dnn_alloc((size_t)(k + 1) * (size_t)row * sizeof *cheapest);

    /* From the end, so that walking forward can prefer the early extra. */
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

/* Give core number at, as far as the mask allows. */
static void give(const struct dnn_topo *topo, int at, const struct dnn_topo_set *mask,
                 struct dnn_topo_set *pus)
{
    struct dnn_topo_set both;

    dnn_topo_meet(&topo->core[at].pus, mask, &both);
    for (size_t w = 0; w < sizeof both.word / sizeof *both.word; w++)
        pus->word[w] |= both.word[w];
}

/* Divide one mask among the k ranks who[0..k). */
static void split(struct node *node, const int *who, int k)
{
    const struct dnn_topo_set *mask = &node->request[who[0]]->granted;
    struct cores c = cores_in(node->topo, mask);

    if (c.n < k) {
        for (int i = 0; i < k; i++) {
            int mine = (int)((int64_t)i * c.n / k);

            give(node->topo, c.at[mine], mask, &node->pus[who[i]]);
            for (int j = i - 1; j >= 0 && (int64_t)j * c.n / k == mine; j--)
                node->turn[who[i]]++;
        }
    } else {
        int *size = dnn_alloc((size_t)k * sizeof *size);

        cut(&c, k, size);
        for (int i = 0, at = 0; i < k; i++)
            for (int end = at + size[i]; at < end; at++)
                give(node->topo, c.at[at], mask, &node->pus[who[i]]);
        dnn_free(size);
    }
    free_cores(&c);
}

/* Who gets which PUs, on the whole node. */
static void share(struct node *node)
{
    int *who = dnn_alloc((size_t)node->n * sizeof *who);
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
                who[k++] = s;
                done[s] = true;
            }
        split(node, who, k);
    }
    dnn_free(who);
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
        if (!dnn_topo_meet(&near, &p->pus, NULL)) continue;
        dnn_topo_add(&p->numas, (int)numa->os_index);
        p->local_memory += numa->attr->numanode.local_memory;
    }
    p->nnumas = dnn_topo_count(&p->numas);
    p->total_memory = machine->total_memory;
}

/* So many threads; see enum dnn_topo_want. */
static int threads_for(const struct dnn_topo *topo,
                       const struct dnn_topo_request *request, const struct cores *c,
                       const struct dnn_topo_set *pus)
{
    int cores = 0;

    if (request->want == DNN_WANT_THREADS) return request->threads;
    if (request->want == DNN_WANT_CORES) return c->n;
    for (int cpus = 0; cores < c->n && cpus < request->threads; cores++) {
        struct dnn_topo_set both;

        dnn_topo_meet(&topo->core[c->at[cores]].pus, pus, &both);
        cpus += dnn_topo_count(&both);
    }
    return cores;
}

/* One PU per thread: first PUs of the cores, then second ones if threads are
 * more than cores, then all over again.  Fewer threads than cores take the
 * neighbours that cross the least. */
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

            dnn_topo_meet(&topo->core[c->at[i]].pus, &p->pus, &own);
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

    /* All bytes are set, padding too, because places are sent as bytes. */
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

/* The ranks on our host, and whether their masks make sense here. */
static int gather(struct node *node, const struct dnn_topo_request *requests,
                  int nrequests, int me, struct dnn_err *err)
{
    struct dnn_topo_set all = {{0}};

    dnn_topo_from_bitmap(&all, hwloc_topology_get_topology_cpuset(node->topo->hw));
    for (int r = 0; r < nrequests; r++) {
        if (strcmp(requests[r].host, requests[me].host) != 0) continue;
        if (!dnn_topo_meet(&requests[r].granted, &all, NULL))
            return dnn_fail(err, DNN_EUSAGE,
                            "rank %d on %s was granted no CPU that this machine has", r,
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
