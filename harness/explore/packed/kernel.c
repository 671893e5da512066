/* The inner loop of the exhaustive search: states of up to 127 bits, looked up in tables that Python fills on demand.

   A state is one integer. A look-up maps `state & mask` to an entry: edges (a difference to add, and channels whose
   difference depends on their own bits), answers of checks, and look-ups in which to look further. What is missing is
   asked for by a callback, before anything of that state counts, so that an error leaves no state half expanded.
   States are kept in the order of their discovery; the table of seen states holds their numbers and some bits of
   their hash. Compiled without Python's headers, used through ctypes. */

#include <stdint.h>
#include <stdlib.h>
#include <string.h>

typedef unsigned __int128 u128;
typedef uint64_t u64;
typedef uint32_t u32;

#define NONE 0xFFFFFFFFu
#define NOTHING 0u              /* the entry that is empty: the most frequent one */
#define API __attribute__((visibility("default")))
#define LIKELY(x) __builtin_expect(!!(x), 1)

enum { LOOK_UP = 0, CHANNEL = 1, IMAGE = 2 };
enum { OK = 0, FAILED = -1, NO_MEMORY = -2, LIMIT = -3 };

static inline u64 mix(u128 x)
{
    u64 a = (u64)x ^ 0x9E3779B97F4A7C15ull, b = (u64)(x >> 64) ^ 0xD6E8FEB86659FD93ull;
    u128 m = (u128)a * b;
    u64 h = (u64)m ^ (u64)(m >> 64);
    h ^= h >> 32;
    return h * 0x9FB21C651E98DF25ull;
}

static inline u128 join(u64 low, u64 high) { return (u128)low | (u128)high << 64; }

/* ---- a small map from masked states to numbers ---- */

typedef struct { u64 low, high; u32 value; } Slot;
typedef struct { Slot *slots; u64 limit, count; } Map;

static int map_clear(Map *map)
{
    free(map->slots);
    map->slots = NULL;
    map->limit = map->count = 0;
    return OK;
}

static inline u32 map_get(const Map *map, u128 key)
{
    if (!map->slots) return NONE;
    u64 at = mix(key) >> 20 & map->limit;
    for (;;) {
        const Slot *slot = &map->slots[at];
        if (slot->value == NONE) return NONE;
        if (slot->low == (u64)key && slot->high == (u64)(key >> 64)) return slot->value;
        at = (at + 1) & map->limit;
    }
}

static int map_put(Map *map, u128 key, u32 value)
{
    if (!map->slots || map->count * 2 > map->limit) {
        u64 size = map->slots ? (map->limit + 1) * 2 : 8;
        Slot *slots = malloc(size * sizeof(Slot)), *old = map->slots;
        if (!slots) return NO_MEMORY;
        for (u64 i = 0; i < size; i++) slots[i].value = NONE;
        u64 had = old ? map->limit + 1 : 0;
        map->slots = slots;
        map->limit = size - 1;
        for (u64 i = 0; i < had; i++) {
            if (old[i].value == NONE) continue;
            u64 at = mix(join(old[i].low, old[i].high)) >> 20 & map->limit;
            while (slots[at].value != NONE) at = (at + 1) & map->limit;
            slots[at] = old[i];
        }
        free(old);
    }
    u64 at = mix(key) >> 20 & map->limit;
    while (map->slots[at].value != NONE) {
        if (map->slots[at].low == (u64)key && map->slots[at].high == (u64)(key >> 64)) {
            map->slots[at].value = value;
            return OK;
        }
        at = (at + 1) & map->limit;
    }
    map->slots[at] = (Slot){ (u64)key, (u64)(key >> 64), value };
    map->count++;
    return OK;
}

/* ---- growing arrays ---- */

#define ARRAY(type) struct { type *at; u64 count, room; }

static int grow(void **at, u64 *room, u64 need, size_t size)
{
    if (need <= *room) return OK;
    u64 more = *room + *room / 2 + 64;
    if (more < need) more = need;
    void *moved = realloc(*at, more * size);
    if (!moved) return NO_MEMORY;
    *at = moved;
    *room = more;
    return OK;
}

#define ROOM(array, more) grow((void **)&(array).at, &(array).room, (array).count + (more), sizeof *(array).at)

/* A table by `state & mask`: an array where the mask is a few runs of few bits, else a map. */
typedef struct { u128 mask; Map map; u32 *direct; u32 bits, runs, shift[4], low[4], at[4]; } Table;
typedef struct { u64 ways, hits; u32 edges, edges_end, children, children_end; u32 answers; } Entry;
typedef struct { u128 delta; u32 channels, channels_end; } Edge;
typedef struct { u32 shift; u64 low; u128 *difference; uint8_t *known; u64 room; } Channel;
typedef struct { u128 part, rest; u32 next; } Image;    /* what to add, which bits stay, where to look next */
typedef struct { u64 state; u32 found; u32 unused; } Event;
typedef struct { u128 after; u64 hash; } Pending;

typedef int64_t (*Miss)(int kind, u32 number, u64 low, u64 high);

typedef struct {
    Miss miss;
    ARRAY(Table) look_ups;
    ARRAY(Entry) entries;
    ARRAY(Edge) edges;
    ARRAY(u32) links;             /* children of entries, channels of edges */
    ARRAY(Channel) channels;
    ARRAY(u32) roots;
    ARRAY(Table) orbits;           /* of the canonical image: mask and map to images */
    ARRAY(Image) images;
    ARRAY(u128) states;
    ARRAY(Event) events;
    ARRAY(u128) outside;          /* states out of bounds */
    Map outside_map;
    ARRAY(u128) after;            /* successors of the state at hand */
    ARRAY(u32) met;               /* entries of the state at hand */
    ARRAY(u32) ahead;
    ARRAY(Pending) pending;
    u64 *seen;                    /* 24 bits of hash above 40 bits of number + 1; or fingerprints */
    u64 limit;
    u64 distinct, generated;
    int symmetric, deadlocks, fingerprints;
    u32 bounds;
} Kernel;

#define NUMBER ((1ull << 40) - 1)

static void table_mask(Table *table, u128 mask)
{
    memset(table, 0, sizeof *table);
    table->mask = mask;
    u32 bit = 0;
    while (mask >> bit) {
        if (!(mask >> bit & 1)) { bit++; continue; }
        u32 end = bit;
        while (end < 128 && mask >> end & 1) end++;
        if (table->runs == 4 || table->bits + end - bit > 12) { table->runs = 0; table->bits = 99; return; }
        table->shift[table->runs] = bit;
        table->low[table->runs] = (1u << (end - bit)) - 1;
        table->at[table->runs++] = table->bits;
        table->bits += end - bit;
        if (end == 128) break;
        bit = end;
    }
}

static inline u32 direct_index(const Table *table, u128 state)
{
    u32 index = 0;
    for (u32 i = 0; i < table->runs; i++)
        index |= ((u32)(state >> table->shift[i]) & table->low[i]) << table->at[i];
    return index;
}

static inline u32 table_get(const Table *table, u128 state)
{
    if (table->bits <= 12) return table->direct ? table->direct[direct_index(table, state)] : NONE;
    return map_get(&table->map, state & table->mask);
}

static int table_put(Table *table, u128 state, u32 value)
{
    if (table->bits > 12) return map_put(&table->map, state & table->mask, value);
    if (!table->direct) {
        if (!(table->direct = malloc(sizeof(u32) << table->bits))) return NO_MEMORY;
        memset(table->direct, 0xFF, sizeof(u32) << table->bits);
    }
    table->direct[direct_index(table, state)] = value;
    return OK;
}

static void table_clear(Table *table)
{
    map_clear(&table->map);
    free(table->direct);
    table->direct = NULL;
}

API Kernel *kernel_new(Miss miss)
{
    Kernel *k = calloc(1, sizeof(Kernel));
    if (!k) return NULL;
    k->miss = miss;
    k->bounds = NONE;
    k->limit = (1u << 12) - 1;
    k->seen = calloc(k->limit + 1, sizeof(u64));
    return k;
}

static void forget_tables(Kernel *k)
{
    for (u64 i = 0; i < k->look_ups.count; i++) table_clear(&k->look_ups.at[i]);
    for (u64 i = 0; i < k->orbits.count; i++) table_clear(&k->orbits.at[i]);
    for (u64 i = 0; i < k->channels.count; i++) {
        free(k->channels.at[i].difference);
        free(k->channels.at[i].known);
    }
    k->look_ups.count = k->orbits.count = k->channels.count = k->entries.count = k->edges.count = 0;
    k->links.count = k->images.count = k->roots.count = 0;
}

API void kernel_free(Kernel *k)
{
    forget_tables(k);
    map_clear(&k->outside_map);
    free(k->look_ups.at); free(k->entries.at); free(k->edges.at); free(k->links.at); free(k->channels.at);
    free(k->roots.at); free(k->orbits.at); free(k->images.at); free(k->states.at); free(k->events.at);
    free(k->outside.at); free(k->after.at); free(k->met.at); free(k->ahead.at); free(k->pending.at); free(k->seen);
    free(k);
}

API void kernel_options(Kernel *k, int symmetric, int deadlocks, int fingerprints)
{
    k->symmetric = symmetric;
    k->deadlocks = deadlocks;
    k->fingerprints = fingerprints;
}

/* ---- tables, filled by Python ---- */

API int64_t kernel_look_up(Kernel *k, u64 low, u64 high)
{
    if (ROOM(k->look_ups, 1)) return NO_MEMORY;
    table_mask(&k->look_ups.at[k->look_ups.count], join(low, high));
    return (int64_t)k->look_ups.count++;
}

API void kernel_narrow(Kernel *k, u32 number, u64 low, u64 high)
{
    table_clear(&k->look_ups.at[number]);
    table_mask(&k->look_ups.at[number], join(low, high));
}

API int64_t kernel_orbit(Kernel *k, u64 low, u64 high)
{
    if (ROOM(k->orbits, 1)) return NO_MEMORY;
    table_mask(&k->orbits.at[k->orbits.count], join(low, high));
    return (int64_t)k->orbits.count++;
}

API int64_t kernel_image(Kernel *k, u64 low, u64 high, u64 rest_low, u64 rest_high, u32 next)
{
    if (ROOM(k->images, 1)) return NO_MEMORY;
    k->images.at[k->images.count] = (Image){ join(low, high), join(rest_low, rest_high), next };
    return (int64_t)k->images.count++;
}

API int64_t kernel_channel(Kernel *k, u32 shift, u64 low)
{
    if (ROOM(k->channels, 1)) return NO_MEMORY;
    k->channels.at[k->channels.count] = (Channel){ shift, low, NULL, NULL, 0 };
    return (int64_t)k->channels.count++;
}

API int kernel_difference(Kernel *k, u32 number, u64 at, u64 low, u64 high)
{
    Channel *channel = &k->channels.at[number];
    if (at >= channel->room) {
        u64 room = at + at / 2 + 16;
        u128 *difference = realloc(channel->difference, room * sizeof(u128));
        if (!difference) return NO_MEMORY;
        channel->difference = difference;
        uint8_t *known = realloc(channel->known, room);
        if (!known) return NO_MEMORY;
        memset(known + channel->room, 0, room - channel->room);
        channel->known = known;
        channel->room = room;
    }
    channel->difference[at] = join(low, high);
    channel->known[at] = 1;
    return OK;
}

/* An entry as a list of numbers: ways, answers, children (count, numbers), edges (count; delta, channels (count, ...)) */
API int64_t kernel_entry(Kernel *k, const u64 *list)
{
    Entry found = { list[0], 0, 0, 0, 0, 0, (u32)list[1] };
    u64 children = list[2];
    list += 3;
    if (ROOM(k->links, children) || ROOM(k->entries, 1)) return NO_MEMORY;
    found.children = (u32)k->links.count;
    for (u64 i = 0; i < children; i++) k->links.at[k->links.count++] = (u32)*list++;
    found.children_end = (u32)k->links.count;
    u64 edges = *list++;
    if (ROOM(k->edges, edges)) return NO_MEMORY;
    found.edges = (u32)k->edges.count;
    for (u64 i = 0; i < edges; i++) {
        Edge edge = { join(list[0], list[1]), (u32)k->links.count, 0 };
        u64 channels = list[2];
        list += 3;
        if (ROOM(k->links, channels)) return NO_MEMORY;
        for (u64 j = 0; j < channels; j++) k->links.at[k->links.count++] = (u32)*list++;
        edge.channels_end = (u32)k->links.count;
        k->edges.at[k->edges.count++] = edge;
    }
    found.edges_end = (u32)k->edges.count;
    k->entries.at[k->entries.count] = found;
    return (int64_t)k->entries.count++;
}

/* What the checks of an entry answer is not needed any more. */
API void kernel_mute(Kernel *k, u32 found) { k->entries.at[found].answers = 0; }

API int kernel_roots(Kernel *k, const u32 *numbers, u64 count, u32 bounds)
{
    k->roots.count = 0;
    if (ROOM(k->roots, count)) return NO_MEMORY;
    memcpy(k->roots.at, numbers, count * sizeof(u32));
    k->roots.count = count;
    k->bounds = bounds;
    return OK;
}

API void kernel_hits(Kernel *k, u64 *hits)
{
    for (u64 i = 0; i < k->entries.count; i++) {
        hits[i] = k->entries.at[i].hits;
        k->entries.at[i].hits = 0;
    }
}

/* ---- the states seen ---- */

static u64 bytes_used(const Kernel *k)
{
    return k->states.room * sizeof(u128) + (k->limit + 1) * sizeof(u64);
}

static int seen_grow(Kernel *k)
{
    u64 size = (k->limit + 1) * 2;
    u64 *wide = calloc(size, sizeof(u64));
    if (!wide) return NO_MEMORY;
    u64 limit = size - 1;
    if (k->fingerprints) {
        for (u64 i = 0; i <= k->limit; i++) {
            u64 entry = k->seen[i];
            if (!entry) continue;
            u64 at = entry & limit;
            while (wide[at]) at = (at + 1) & limit;
            wide[at] = entry;
        }
    } else {
        for (u64 n = 0; n < k->states.count; n++) {
            u64 hash = mix(k->states.at[n]), at = hash & limit;
            while (wide[at]) at = (at + 1) & limit;
            wide[at] = (hash >> 40) << 40 | (n + 1);
        }
    }
    free(k->seen);
    k->seen = wide;
    k->limit = limit;
    return OK;
}

/* The number of a state, or NUMBER where it is not among the seen ones. Exact states only. */
static inline u64 seen_get(const Kernel *k, u128 state, u64 hash)
{
    u64 at = hash & k->limit, entry, tag = hash >> 40;
    while ((entry = k->seen[at])) {
        if (entry >> 40 == tag && k->states.at[(entry & NUMBER) - 1] == state) return (entry & NUMBER) - 1;
        at = (at + 1) & k->limit;
    }
    return NUMBER;
}

static inline int keep(Kernel *k, u128 state)
{
    if (k->states.count == k->states.room) {
            if (ROOM(k->states, 1)) return NO_MEMORY;
    }
    k->states.at[k->states.count++] = state;
    k->distinct++;
    return OK;
}

/* Put a state among the seen ones: 1 if it is new, 0 if not, less where that cannot be. */
static inline int seen_put(Kernel *k, u128 state, u64 hash)
{
    int failed;
    if (k->distinct * 3 > k->limit * 2 && (failed = seen_grow(k))) return failed;
    if (k->fingerprints) {
        u64 mark = hash ? hash : 1, at = mark & k->limit, entry;
        while ((entry = k->seen[at])) {
            if (entry == mark) return 0;
            at = (at + 1) & k->limit;
        }
        if ((failed = keep(k, state))) return failed;
        k->seen[at] = mark;
        return 1;
    }
    u64 at = hash & k->limit, entry, tag = hash >> 40;
    while ((entry = k->seen[at])) {
        if (entry >> 40 == tag && k->states.at[(entry & NUMBER) - 1] == state) return 0;
        at = (at + 1) & k->limit;
    }
    if ((failed = keep(k, state))) return failed;
    k->seen[at] = tag << 40 | k->states.count;
    return 1;
}

/* ---- looking up ---- */

static inline u32 look_up_get(Kernel *k, u32 number, u128 state)
{
    Table *table = &k->look_ups.at[number];
    u32 found = table_get(table, state);
    if (LIKELY(found != NONE)) return found;
    int64_t answer = k->miss(LOOK_UP, number, (u64)state, (u64)(state >> 64));
    if (answer < 0) return NONE;
    table = &k->look_ups.at[number];
    if (table_put(table, state, (u32)answer)) return NONE;
    return (u32)answer;
}

static inline int least(Kernel *k, u128 *state)
{
    u128 from = *state, image = 0;
    u32 at = 0;
    do {
        Table *orbit = &k->orbits.at[at];
        u32 found = table_get(orbit, from);
        if (found == NONE) {
            int64_t answer = k->miss(IMAGE, at, (u64)from, (u64)(from >> 64));
            if (answer < 0) return FAILED;
            orbit = &k->orbits.at[at];
            found = (u32)answer;
            if (table_put(orbit, from, found)) return NO_MEMORY;
        }
        image += k->images.at[found].part + (from & k->images.at[found].rest);
        at = k->images.at[found].next;
    } while (at != NONE);
    *state = image;
    return OK;
}

/* Find all that is known of a state: entries into `met`, successors (canonical where asked) into `after`. */
static int look(Kernel *k, u128 state)
{
    k->met.count = k->after.count = k->ahead.count = 0;
    if (ROOM(k->ahead, k->roots.count)) return NO_MEMORY;
    for (u64 i = k->roots.count; i-- > 0;) k->ahead.at[k->ahead.count++] = k->roots.at[i];
    while (k->ahead.count) {
        u32 number = look_up_get(k, k->ahead.at[--k->ahead.count], state);
        if (number == NOTHING) continue;
        if (number == NONE) return FAILED;
        Entry *found = &k->entries.at[number];
        if (found->edges != found->edges_end || found->answers) {
            if (ROOM(k->met, 1)) return NO_MEMORY;
            k->met.at[k->met.count++] = number;
        }
        u64 children = found->children_end - found->children;
        if (ROOM(k->ahead, children)) return NO_MEMORY;
        for (u64 i = children; i-- > 0;) k->ahead.at[k->ahead.count++] = k->links.at[found->children + i];
    }
    for (u64 m = 0; m < k->met.count; m++) {
        u32 first = k->entries.at[k->met.at[m]].edges, end = k->entries.at[k->met.at[m]].edges_end;
        if (ROOM(k->after, end - first)) return NO_MEMORY;
        for (u32 e = first; e < end; e++) {
            u128 after = state + k->edges.at[e].delta;
            for (u32 c = k->edges.at[e].channels; c < k->edges.at[e].channels_end; c++) {
                u32 number = k->links.at[c];
                Channel *channel = &k->channels.at[number];
                u64 at = (u64)(state >> channel->shift) & channel->low;
                if (at >= channel->room || !channel->known[at]) {
                    if (k->miss(CHANNEL, number, (u64)state, (u64)(state >> 64)) < 0) return FAILED;
                    channel = &k->channels.at[number];
                }
                after += channel->difference[at];
            }
            if (k->symmetric && least(k, &after)) return FAILED;
            k->after.at[k->after.count++] = after;
        }
    }
    return OK;
}

static int is_outside(Kernel *k, u128 state)
{
    u32 table = k->bounds;
    while (table != NONE) {
        u32 number = look_up_get(k, table, state);
        if (number == NONE) return FAILED;
        Entry *found = &k->entries.at[number];
        if (found->answers) return 1;
        table = found->children == found->children_end ? NONE : k->links.at[found->children];
    }
    return 0;
}

static int commit(Kernel *k)
{
    for (u64 i = 0; i < k->pending.count; i++) {
        Pending *p = &k->pending.at[i];
        int new = seen_put(k, p->after, p->hash);
        if (new < 0) return new;
    }
    k->pending.count = 0;
    return OK;
}

/* Add states that are known: the initial ones, or those of a search that is resumed. */
API int kernel_seed(Kernel *k, const u64 *states, u64 number)
{
    for (u64 n = 0; n < number; n++) {
        u128 state = join(states[2 * n], states[2 * n + 1]);
        int new = seen_put(k, state, mix(state));
        if (new < 0) return new;
    }
    return OK;
}

/* Expand the states from *begin up to end (numbers among those kept); *begin is where it stopped. */
API int kernel_expand(Kernel *k, u64 *begin, u64 end)
{
    int failed;
    for (; *begin < end; ++*begin) {
        u128 state = k->states.at[*begin];
        if ((failed = look(k, state))) { int also = commit(k); return also ? also : failed; }
        if (k->bounds != NONE) {
            u64 kept = 0;
            for (u64 i = 0; i < k->after.count; i++) {
                u128 after = k->after.at[i];
                int outside = is_outside(k, after);
                if (outside < 0) { int also = commit(k); return also ? also : FAILED; }
                if (!outside) k->after.at[kept++] = after;
                else if (map_get(&k->outside_map, after) == NONE) {
                    if (map_put(&k->outside_map, after, 0) || ROOM(k->outside, 1)) return NO_MEMORY;
                    k->outside.at[k->outside.count++] = after;
                }
            }
            k->after.count = kept;
        }
        int any = 0;
        for (u64 m = 0; m < k->met.count; m++) {
            Entry *found = &k->entries.at[k->met.at[m]];
            found->hits++;
            k->generated += found->ways;
            any |= found->edges != found->edges_end;
            if (found->answers) {
                if (ROOM(k->events, 1)) return NO_MEMORY;
                k->events.at[k->events.count++] = (Event){ *begin, k->met.at[m], 0 };
            }
        }
        if (!any && k->deadlocks) {
            if (ROOM(k->events, 1)) return NO_MEMORY;
            k->events.at[k->events.count++] = (Event){ *begin, NONE, 0 };
        }
        if (ROOM(k->pending, k->after.count)) return NO_MEMORY;
        for (u64 i = 0; i < k->after.count; i++) {
            u128 after = k->after.at[i];
            if (after == state) continue;
            u64 hash = mix(after);
            __builtin_prefetch(&k->seen[hash & k->limit]);
            k->pending.at[k->pending.count++] = (Pending){ after, hash };
        }
        if (k->pending.count >= 32 && (failed = commit(k))) { ++*begin; return failed; }
    }
    return commit(k);
}

/* Which of some states have one of the targets among their successors. */
API int64_t kernel_sources(Kernel *k, const u64 *targets, u64 count, const u64 *states, u64 number, u64 *sources)
{
    Map map = { NULL, 0, 0 };
    int64_t found = 0;
    for (u64 i = 0; i < count; i++)
        if (map_put(&map, join(targets[2 * i], targets[2 * i + 1]), 0)) { map_clear(&map); return NO_MEMORY; }
    for (u64 n = 0; n < number; n++) {
        if (look(k, join(states[2 * n], states[2 * n + 1]))) { map_clear(&map); return FAILED; }
        for (u64 i = 0; i < k->after.count; i++)
            if (map_get(&map, k->after.at[i]) != NONE) { sources[found++] = n; break; }
    }
    map_clear(&map);
    return found;
}

/* The edges of the states from begin to end as three lists: from, to, and the number of the edge. */
API int64_t kernel_graph(Kernel *k, u64 begin, u64 end, int32_t *from, int32_t *to, int32_t *label, u64 room)
{
    u64 count = 0;
    for (u64 n = begin; n < end; n++) {
        if (look(k, k->states.at[n])) return FAILED;
        u64 i = 0;
        for (u64 m = 0; m < k->met.count; m++)
            for (u32 e = k->entries.at[k->met.at[m]].edges; e < k->entries.at[k->met.at[m]].edges_end; e++, i++) {
                u64 number = seen_get(k, k->after.at[i], mix(k->after.at[i]));
                if (number == NUMBER) continue;
                if (count == room) return LIMIT;
                from[count] = (int32_t)n;
                to[count] = (int32_t)number;
                label[count++] = (int32_t)e;
            }
    }
    return (int64_t)count;
}

/* ---- reading ---- */

API void kernel_counts(const Kernel *k, u64 *counts)
{
    counts[0] = k->states.count;
    counts[1] = k->distinct;
    counts[2] = k->generated;
    counts[3] = k->events.count;
    counts[4] = k->outside.count;
    counts[5] = k->entries.count;
    counts[6] = bytes_used(k);
}

API void kernel_read(const Kernel *k, u64 begin, u64 end, u64 *out)
{
    memcpy(out, k->states.at + begin, (end - begin) * sizeof(u128));
}

API void kernel_read_outside(const Kernel *k, u64 *out)
{
    memcpy(out, k->outside.at, k->outside.count * sizeof(u128));
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
    memmove(k->states.at, k->states.at + number, (k->states.count - number) * sizeof(u128));
    k->states.count -= number;
}

/* Note that a state is seen, where it is known that it is not yet: with its number, or by its fingerprint. */
static void mark(Kernel *k, u128 state, u64 number)
{
    u64 hash = mix(state), entry = hash >> 40 << 40 | (number + 1);
    if (k->fingerprints) entry = hash = hash ? hash : 1;
    u64 at = hash & k->limit;
    while (k->seen[at] && !(k->fingerprints && k->seen[at] == entry)) at = (at + 1) & k->limit;
    k->seen[at] = entry;
}

static u128 moved(u128 state, const u32 *from, const u64 *low, const u32 *to, u64 fields)
{
    u128 after = 0;
    for (u64 i = 0; i < fields; i++) after |= (u128)((u64)(state >> from[i]) & low[i]) << to[i];
    return after;
}

/* Pack all states anew: field i moves from one shift to another. Tables are forgotten, counts and states stay. */
API int kernel_repack(Kernel *k, const u32 *from, const u64 *low, const u32 *to, u64 fields)
{
    forget_tables(k);
    memset(k->seen, 0, (k->limit + 1) * sizeof(u64));
    for (u64 n = 0; n < k->states.count; n++) {
        k->states.at[n] = moved(k->states.at[n], from, low, to, fields);
        mark(k, k->states.at[n], n);
    }
    map_clear(&k->outside_map);
    for (u64 n = 0; n < k->outside.count; n++) {
        k->outside.at[n] = moved(k->outside.at[n], from, low, to, fields);
        if (map_put(&k->outside_map, k->outside.at[n], 0)) return NO_MEMORY;
    }
    return OK;
}

/* The same for states that are not kept (with fingerprints only). */
API void kernel_repack_dropped(
    Kernel *k, u64 *states, u64 number, const u32 *from, const u64 *low, const u32 *to, u64 fields)
{
    for (u64 n = 0; n < number; n++) {
        u128 state = moved(join(states[2 * n], states[2 * n + 1]), from, low, to, fields);
        mark(k, state, 0);
        states[2 * n] = (u64)state;
        states[2 * n + 1] = (u64)(state >> 64);
    }
}
