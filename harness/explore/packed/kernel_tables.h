/* The tables in which the kernel looks states up: small maps, growing arrays, entries. Python fills them on demand. */

#ifndef KERNEL_TABLES_H
#define KERNEL_TABLES_H

#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "kernel_bits.h"

#define NONE 0xFFFFFFFFu
#define NOTHING 0u              /* the entry that is empty: the most frequent one */
#define API __attribute__((visibility("default")))
#define LIKELY(x) __builtin_expect(!!(x), 1)

enum { LOOK_UP = 0, CHANNEL = 1, IMAGE = 2 };
enum { OK = 0, FAILED = -1, NO_MEMORY = -2, LIMIT = -3, MISSED = -4 };

/* ---- a small map from masked states to numbers ---- */

typedef struct { u64 key[WORDS]; u32 value; } Slot;
typedef struct { Slot *slots; u64 limit, count; } Map;

static int map_clear(Map *map)
{
    free(map->slots);
    map->slots = NULL;
    map->limit = map->count = 0;
    return OK;
}

static inline u32 map_get(const Map *map, Bits key)
{
    if (!map->slots) return NONE;
    u64 at = mix(key) >> 20 & map->limit;
    for (;;) {
        const Slot *slot = &map->slots[at];
        if (slot->value == NONE) return NONE;
        if (same(bits_of(slot->key), key)) return slot->value;
        at = (at + 1) & map->limit;
    }
}

static int map_put(Map *map, Bits key, u32 value)
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
            u64 at = mix(bits_of(old[i].key)) >> 20 & map->limit;
            while (slots[at].value != NONE) at = (at + 1) & map->limit;
            slots[at] = old[i];
        }
        free(old);
    }
    u64 at = mix(key) >> 20 & map->limit;
    while (map->slots[at].value != NONE) {
        if (same(bits_of(map->slots[at].key), key)) {
            map->slots[at].value = value;
            return OK;
        }
        at = (at + 1) & map->limit;
    }
    words_of(key, map->slots[at].key);
    map->slots[at].value = value;
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
typedef struct { Bits mask; Map map; u32 *direct; u32 bits, runs, shift[4], low[4], at[4]; } Table;
typedef struct { u64 ways; u32 edges, edges_end, children, children_end; u32 answers; } Entry;
typedef struct { Bits delta; u32 channels, channels_end; } Edge;
typedef struct { u32 shift; u64 low; Bits *difference; uint8_t *known; u64 room; } Channel;
typedef struct { Bits part, rest; u32 next; } Image;    /* what to add, which bits stay, where to look next */
typedef struct { u64 state; u32 found; u32 unused; } Event;
typedef struct { Bits after; u64 hash; u32 of, nth : 31, stays : 1; } Successor;    /* of which state, and which one */
typedef struct { Bits state; u32 of; } Outside;
typedef struct { const Successor *found; u64 place, at; } Fresh;    /* its place in the batch; where it is seen */
typedef ARRAY(Successor) Successors;

#define MOST_THREADS 64
#define APART 128               /* bytes between what different threads write: a line of the cache, and its neighbour */

/* What was found of states, one after the other: entries, successors (by shard, if there are parts), what is out of
   bounds; whether Python may be asked for what the tables lack; whether any state answers, or leads nowhere. */
typedef struct {
    ARRAY(u32) met; ARRAY(u32) ahead; ARRAY(Outside) outside;
    Successors after[MOST_THREADS];
    u32 parts;
    int asks, says, lacks;
    char apart[APART];
} Looker;

/* Some of the seen states: bits of the hash above the number + 1, or fingerprints; and which of a batch are new. */
typedef struct {
    u64 *seen;
    u64 limit;                  /* of `seen`: its size - 1 */
    u64 furthest;               /* the most that an entry of `seen` stands behind its place */
    u64 count;
    u32 bits;                   /* of the size of `seen` */
    int failed;
    ARRAY(Fresh) fresh;
    ARRAY(u64) marks;           /* a bit for each successor of the batch */
    char apart[APART];
} Shard;

/* What was found of a state: which of a looker's entries; whether any of them leads on, or answers. */
typedef struct { int code, leads, answers; u32 met, met_end; } Found;

static void looker_free(Looker *l)
{
    free(l->met.at); free(l->ahead.at); free(l->outside.at);
    for (u32 s = 0; s < MOST_THREADS; s++) free(l->after[s].at);
}

#define MOST_OF_BATCH 8192       /* states that are looked up together */

typedef int64_t (*Miss)(int kind, u32 number);   /* of the state in `missed` */

typedef struct {
    Miss miss;
    u64 *missed;
    ARRAY(Table) look_ups;
    ARRAY(Entry) entries;
    ARRAY(Edge) edges;
    ARRAY(u32) links;             /* children of entries, channels of edges */
    ARRAY(Channel) channels;
    ARRAY(u32) roots;
    ARRAY(Table) orbits;          /* of the canonical image: mask and map to images */
    ARRAY(Image) images;
    int symmetric, deadlocks, fingerprints;
    u32 bounds, threads, size_of_batch;
    struct Work *work;            /* batches, once there are any */
    Shard *shards;                /* as many as threads */
    char apart[APART];            /* above is what threads read while one of them writes what is below */
    ARRAY(Bits) states;
    ARRAY(u64) hits;              /* of entries, how often each was met */
    ARRAY(Event) events;
    ARRAY(Bits) outside;          /* states out of bounds */
    Map outside_map;
    Looker looker;                /* of the state at hand */
    u64 distinct, generated, misses, together;  /* the last: states that threads found ready */
    int calm;                     /* whether the last states lacked little */
} Kernel;

#define NUMBER ((1ull << 36) - 1)

static void table_mask(Table *table, Bits mask)
{
    memset(table, 0, sizeof *table);
    table->mask = mask;
    u32 bit = 0;
    while (bit < 64 * WORDS) {
        if (!(bits_at(mask, bit) & 1)) { bit++; continue; }
        u32 end = bit;
        while (end < 64 * WORDS && bits_at(mask, end) & 1) end++;
        if (table->runs == 4 || table->bits + end - bit > 12) { table->runs = 0; table->bits = 99; return; }
        table->shift[table->runs] = bit;
        table->low[table->runs] = (1u << (end - bit)) - 1;
        table->at[table->runs++] = table->bits;
        table->bits += end - bit;
        bit = end;
    }
}

static inline u32 direct_index(const Table *table, Bits state)
{
    u32 index = 0;
    for (u32 i = 0; i < table->runs; i++)
        index |= ((u32)bits_at(state, table->shift[i]) & table->low[i]) << table->at[i];
    return index;
}

static inline u32 table_get(const Table *table, Bits state)
{
    if (table->bits <= 12) return table->direct ? table->direct[direct_index(table, state)] : NONE;
    return map_get(&table->map, both(state, table->mask));
}

static int table_put(Table *table, Bits state, u32 value)
{
    if (table->bits > 12) return map_put(&table->map, both(state, table->mask), value);
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

API Kernel *kernel_new(Miss miss, u64 *missed)
{
    Kernel *k = calloc(1, sizeof(Kernel));
    if (!k) return NULL;
    k->miss = miss;
    k->missed = missed;
    k->bounds = NONE;
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
    k->look_ups.count = k->orbits.count = k->channels.count = k->entries.count = k->hits.count = 0;
    k->edges.count = 0;
    k->links.count = k->images.count = k->roots.count = 0;
}

/* ---- tables, filled by Python ---- */

API int64_t kernel_look_up(Kernel *k, const u64 *mask)
{
    if (ROOM(k->look_ups, 1)) return NO_MEMORY;
    table_mask(&k->look_ups.at[k->look_ups.count], bits_of(mask));
    return (int64_t)k->look_ups.count++;
}

API void kernel_narrow(Kernel *k, u32 number, const u64 *mask)
{
    table_clear(&k->look_ups.at[number]);
    table_mask(&k->look_ups.at[number], bits_of(mask));
}

API int64_t kernel_orbit(Kernel *k, const u64 *mask)
{
    if (ROOM(k->orbits, 1)) return NO_MEMORY;
    table_mask(&k->orbits.at[k->orbits.count], bits_of(mask));
    return (int64_t)k->orbits.count++;
}

API int64_t kernel_image(Kernel *k, const u64 *part, const u64 *rest, u32 next)
{
    if (ROOM(k->images, 1)) return NO_MEMORY;
    k->images.at[k->images.count] = (Image){ bits_of(part), bits_of(rest), next };
    return (int64_t)k->images.count++;
}

API int64_t kernel_channel(Kernel *k, u32 shift, u64 low)
{
    if (ROOM(k->channels, 1)) return NO_MEMORY;
    k->channels.at[k->channels.count] = (Channel){ shift, low, NULL, NULL, 0 };
    return (int64_t)k->channels.count++;
}

API int kernel_difference(Kernel *k, u32 number, u64 at, const u64 *found)
{
    Channel *channel = &k->channels.at[number];
    if (at >= channel->room) {
        u64 room = at + at / 2 + 16;
        Bits *difference = realloc(channel->difference, room * sizeof(Bits));
        if (!difference) return NO_MEMORY;
        channel->difference = difference;
        uint8_t *known = realloc(channel->known, room);
        if (!known) return NO_MEMORY;
        memset(known + channel->room, 0, room - channel->room);
        channel->known = known;
        channel->room = room;
    }
    channel->difference[at] = bits_of(found);
    channel->known[at] = 1;
    return OK;
}

/* An entry as a list of numbers: ways, answers, children (count, numbers), edges (count; delta, channels (count, ...)) */
API int64_t kernel_entry(Kernel *k, const u64 *list)
{
    Entry found = { list[0], 0, 0, 0, 0, (u32)list[1] };
    u64 children = list[2];
    list += 3;
    if (ROOM(k->links, children) || ROOM(k->entries, 1) || ROOM(k->hits, 1)) return NO_MEMORY;
    found.children = (u32)k->links.count;
    for (u64 i = 0; i < children; i++) k->links.at[k->links.count++] = (u32)*list++;
    found.children_end = (u32)k->links.count;
    u64 edges = *list++;
    if (ROOM(k->edges, edges)) return NO_MEMORY;
    found.edges = (u32)k->edges.count;
    for (u64 i = 0; i < edges; i++) {
        Edge edge = { bits_of(list), (u32)k->links.count, 0 };
        u64 channels = list[WORDS];
        list += WORDS + 1;
        if (ROOM(k->links, channels)) return NO_MEMORY;
        for (u64 j = 0; j < channels; j++) k->links.at[k->links.count++] = (u32)*list++;
        edge.channels_end = (u32)k->links.count;
        k->edges.at[k->edges.count++] = edge;
    }
    found.edges_end = (u32)k->edges.count;
    k->hits.at[k->hits.count++] = 0;
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

#endif
