/* The inner loop of the exhaustive search: states of some 64-bit words, looked up in tables that Python fills on demand.

   A state is one integer. A look-up maps `state & mask` to an entry: edges (a difference to add, and channels whose
   difference depends on their own bits), answers of checks, and look-ups in which to look further. What is missing is
   asked for by a callback, before anything of that state counts, so that an error leaves no state half expanded.
   States are kept in the order of their discovery; the table of seen states holds their numbers and some bits of
   their hash. Compiled without Python's headers, used through ctypes. */

#include "kernel_batch.h"

API int kernel_options(Kernel *k, int symmetric, int deadlocks, int fingerprints, u32 threads, u32 size_of_batch)
{
    k->symmetric = symmetric;
    k->deadlocks = deadlocks;
    k->fingerprints = fingerprints;
    k->threads = threads < MOST_THREADS ? threads : MOST_THREADS;
    k->size_of_batch = size_of_batch < MOST_OF_BATCH ? size_of_batch : MOST_OF_BATCH;
    k->work = calloc(1, sizeof(Work));
    return k->work ? shards_new(k) : NO_MEMORY;
}

/* ---- expanding ---- */

/* Add states that are known: the initial ones, or those of a search that is resumed. */
API int kernel_seed(Kernel *k, const u64 *states, u64 number)
{
    for (u64 n = 0; n < number; n++) {
        Bits state = bits_of(states + WORDS * n);
        u64 hash = mix(state);
        Shard *shard = shard_of(k, hash);
        if (is_short(shard, 1) && shard_grow(k, shard)) return NO_MEMORY;
        if (ROOM(k->states, 1)) return NO_MEMORY;
        k->states.at[k->states.count] = state;
        if (seen_put(k, shard, state, rest_of(k, hash), k->states.count) == NO_PLACE) continue;
        k->states.count++;
        k->distinct++;
    }
    return OK;
}

/* Expand the states from *begin up to end (numbers among those kept); *begin is where it stopped. */
API int kernel_expand(Kernel *k, u64 *begin, u64 end)
{
    Work *work = k->work;
    int failed = OK, also = OK, many = k->threads > 1 && *begin + 2 * k->size_of_batch < end;
    while (*begin < end && !failed && !also) {
        Batch *batch = work->now = &work->batches[work->now == &work->batches[0]];
        int together = many && k->calm;
        batch->first = *begin;
        batch->count = end - *begin < k->size_of_batch ? end - *begin : k->size_of_batch;
        failed = find_all(k, batch, together);
        also = take_all(k, batch, together);
        if (!also) *begin += batch->count;
    }
    settle_last(k);
    return also ? also : failed;
}

/* Which of some states have one of the targets among their successors, out of bounds or not. */
API int64_t kernel_sources(Kernel *k, const u64 *targets, u64 count, const u64 *states, u64 number, u64 *sources)
{
    Map map = { NULL, 0, 0 };
    int64_t found = 0;
    for (u64 i = 0; i < count; i++)
        if (map_put(&map, bits_of(targets + WORDS * i), 0)) { map_clear(&map); return NO_MEMORY; }
    for (u64 n = 0; n < number; n++) {
        int failed;
        Looker *l = look_at(k, bits_of(states + WORDS * n), &failed);
        if (failed) { map_clear(&map); return FAILED; }
        int leads = 0;
        for (u64 i = 0; i < l->after->count && !leads; i++) leads = map_get(&map, l->after->at[i].after) != NONE;
        for (u64 i = 0; i < l->outside.count && !leads; i++) leads = map_get(&map, l->outside.at[i].state) != NONE;
        if (leads) sources[found++] = n;
    }
    map_clear(&map);
    return found;
}

/* The edges of the states from begin to end as three lists: from, to, and the number of the edge; without bounds. */
API int64_t kernel_graph(Kernel *k, u64 begin, u64 end, int32_t *from, int32_t *to, int32_t *label, u64 room)
{
    u64 count = 0;
    for (u64 n = begin; n < end; n++) {
        int failed;
        Looker *l = look_at(k, k->states.at[n], &failed);
        if (failed) return FAILED;
        u64 i = 0;
        for (u64 m = 0; m < l->met.count; m++)
            for (u32 e = k->entries.at[l->met.at[m]].edges; e < k->entries.at[l->met.at[m]].edges_end; e++, i++) {
                u64 hash = l->after->at[i].hash, rest = rest_of(k, hash);
                u64 entry = seen_get(k, shard_of(k, hash), l->after->at[i].after, rest);
                if (!entry) continue;
                if (count == room) return LIMIT;
                from[count] = (int32_t)n;
                to[count] = (int32_t)((entry & NUMBER) - 1);
                label[count++] = (int32_t)e;
            }
    }
    return (int64_t)count;
}

API void kernel_free(Kernel *k)
{
    forget_tables(k);
    map_clear(&k->outside_map);
    looker_free(&k->looker);
    work_free(k);
    shards_free(k);
    free(k->look_ups.at); free(k->entries.at); free(k->hits.at); free(k->edges.at); free(k->links.at);
    free(k->channels.at); free(k->roots.at); free(k->orbits.at); free(k->images.at); free(k->states.at);
    free(k->events.at); free(k->outside.at);
    free(k);
}

/* ---- reading ---- */

API void kernel_hits(Kernel *k, u64 *hits)
{
    shares_hits(k);
    memcpy(hits, k->hits.at, k->hits.count * sizeof(u64));
    memset(k->hits.at, 0, k->hits.count * sizeof(u64));
}

API void kernel_counts(const Kernel *k, u64 *counts)
{
    counts[0] = k->states.count;
    counts[1] = k->distinct;
    counts[2] = k->generated + shares_generated(k);
    counts[3] = k->events.count;
    counts[4] = k->outside.count;
    counts[5] = k->entries.count;
    counts[6] = bytes_soon(k);
    counts[7] = k->together;
}

API void kernel_read(const Kernel *k, u64 begin, u64 end, u64 *out)
{
    memcpy(out, k->states.at + begin, (end - begin) * sizeof(Bits));
}

API void kernel_read_outside(const Kernel *k, u64 *out)
{
    memcpy(out, k->outside.at, k->outside.count * sizeof(Bits));
}

API void kernel_read_events(Kernel *k, u64 *out)
{
    memcpy(out, k->events.at, k->events.count * sizeof(Event));
    k->events.count = 0;
}

API void kernel_add_generated(Kernel *k, u64 more) { k->generated += more; }

/* Forget the first states (with fingerprints only): what is seen stays seen. */
API void kernel_drop(Kernel *k, u64 number)
{
    memmove(k->states.at, k->states.at + number, (k->states.count - number) * sizeof(Bits));
    k->states.count -= number;
}

static int moves_of(Moves *moves, const u32 *from, const u64 *low, const u32 *to, u64 fields)
{
    if (!(moves->at = malloc((fields + 1) * sizeof(Move)))) return NO_MEMORY;
    moves->count = 0;
    for (u64 i = 0; i < fields; i++) {
        int up = (int)to[i] - (int)from[i];
        u64 m = 0;
        while (m < moves->count && moves->at[m].up != up) m++;
        if (m == moves->count) moves->at[moves->count++] = (Move){ bits_none(), up };
        moves->at[m].mask = sum(moves->at[m].mask, bits_from(low[i], from[i]));
    }
    return OK;
}

static inline Bits moved(Bits state, const Moves *moves)
{
    Bits after = bits_none();
    for (u64 m = 0; m < moves->count; m++) {
        Bits part = both(state, moves->at[m].mask);
        int up = moves->at[m].up;
        after = sum(after, up < 0 ? bits_down(part, (u32)-up) : bits_up(part, (u32)up));
    }
    return after;
}

/* Note that some states are seen, as far as they are of a shard: by their numbers, or by their fingerprints. */
static void mark(Kernel *k, Shard *shard, const Bits *states, u64 count)
{
    struct { u64 rest, number; } some[AT_ONCE];
    u32 held = 0;
    for (u64 n = 0; n < count; n++) {
        u64 hash = mix(states[n]);
        if (shard_of(k, hash) == shard) {
            some[held].rest = rest_of(k, hash);
            some[held].number = n;
            seen_fetch(shard, some[held++].rest);
        }
        if (held < AT_ONCE && n + 1 < count) continue;
        for (u32 i = 0; i < held; i++) seen_put(k, shard, states[some[i].number], some[i].rest, some[i].number);
        held = 0;
    }
}

static void move_task(Kernel *k, u32 who)
{
    (void)who;
    u64 from;
    while ((from = atomic_fetch_add(&k->work->states, MOST_OF_BATCH)) < k->states.count)
        for (u64 n = from; n < from + MOST_OF_BATCH && n < k->states.count; n++)
            k->states.at[n] = moved(k->states.at[n], k->work->moves);
}

static void mark_task(Kernel *k, u32 who)
{
    (void)who;
    u64 s;
    while ((s = atomic_fetch_add(&k->work->shards, 1)) < k->threads) {
        Shard *shard = &k->shards[s];
        memset(shard->seen, 0, (shard->limit + 1) * sizeof(u64));
        shard->furthest = shard->count = 0;
        mark(k, shard, k->states.at, k->states.count);
    }
}

/* Pack all states anew: field i moves from one shift to another. Tables are forgotten, counts and states stay. */
API int kernel_repack(Kernel *k, const u32 *from, const u64 *low, const u32 *to, u64 fields)
{
    Moves moves;
    if (moves_of(&moves, from, low, to, fields)) return NO_MEMORY;
    forget_tables(k);
    k->work->moves = &moves;
    atomic_store(&k->work->states, 0);
    int many = k->threads > 1 && k->states.count > MOST_OF_BATCH;
    int failed = run(k, move_task, many);
    if (!failed) failed = run(k, mark_task, many);
    map_clear(&k->outside_map);
    for (u64 n = 0; n < k->outside.count && !failed; n++) {
        k->outside.at[n] = moved(k->outside.at[n], &moves);
        failed = map_put(&k->outside_map, k->outside.at[n], 0);
    }
    free(moves.at);
    return failed;
}

/* The same for states that are not kept (with fingerprints only). */
API int kernel_repack_dropped(
    Kernel *k, u64 *states, u64 number, const u32 *from, const u64 *low, const u32 *to, u64 fields)
{
    Moves moves;
    if (moves_of(&moves, from, low, to, fields)) return NO_MEMORY;
    for (u64 n = 0; n < number; n++) {
        Bits state = moved(bits_of(states + WORDS * n), &moves);
        mark(k, shard_of(k, mix(state)), &state, 1);
        words_of(state, states + WORDS * n);
    }
    free(moves.at);
    return OK;
}
