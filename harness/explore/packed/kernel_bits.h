/* A packed state as one number of WORDS 64-bit words, the lowest first: sums, masks, the bits at a shift, a hash. */

#ifndef KERNEL_BITS_H
#define KERNEL_BITS_H

#include <stdint.h>

#ifndef WORDS
#define WORDS 2
#endif

typedef unsigned __int128 u128;
typedef uint64_t u64;
typedef uint32_t u32;

static inline u64 mixed(u64 one, u64 other)
{
    u128 m = (u128)(one ^ 0x9E3779B97F4A7C15ull) * (other ^ 0xD6E8FEB86659FD93ull);
    return (u64)m ^ (u64)(m >> 64);
}

static inline u64 finished(u64 h)
{
    h ^= h >> 32;
    return h * 0x9FB21C651E98DF25ull;
}

#if WORDS == 2

typedef u128 Bits;

static inline Bits bits_none(void) { return 0; }
static inline Bits bits_of(const u64 *words) { return (u128)words[0] | (u128)words[1] << 64; }
static inline void words_of(Bits x, u64 *words) { words[0] = (u64)x; words[1] = (u64)(x >> 64); }
static inline int same(Bits x, Bits y) { return x == y; }
static inline Bits both(Bits x, Bits y) { return x & y; }
static inline Bits sum(Bits x, Bits y) { return x + y; }
static inline u64 bits_at(Bits x, u32 shift) { return (u64)(x >> shift); }
static inline Bits bits_from(u64 low, u32 shift) { return (u128)low << shift; }
static inline Bits bits_up(Bits x, u32 by) { return x << by; }
static inline Bits bits_down(Bits x, u32 by) { return x >> by; }
static inline u64 mix(Bits x) { return finished(mixed((u64)x, (u64)(x >> 64))); }

#else

typedef struct { u64 word[WORDS]; } Bits;

static inline Bits bits_none(void) { return (Bits){ { 0 } }; }

static inline Bits bits_of(const u64 *words)
{
    Bits x;
    for (int i = 0; i < WORDS; i++) x.word[i] = words[i];
    return x;
}

static inline void words_of(Bits x, u64 *words)
{
    for (int i = 0; i < WORDS; i++) words[i] = x.word[i];
}

static inline int same(Bits x, Bits y)
{
    u64 differs = 0;
    for (int i = 0; i < WORDS; i++) differs |= x.word[i] ^ y.word[i];
    return !differs;
}

static inline Bits both(Bits x, Bits y)
{
    for (int i = 0; i < WORDS; i++) x.word[i] &= y.word[i];
    return x;
}

static inline Bits sum(Bits x, Bits y)
{
    u128 carry = 0;
    for (int i = 0; i < WORDS; i++) {
        carry += (u128)x.word[i] + y.word[i];
        x.word[i] = (u64)carry;
        carry >>= 64;
    }
    return x;
}

/* 64 bits from a shift on; what is above the highest word is 0. */
static inline u64 bits_at(Bits x, u32 shift)
{
    u32 at = shift >> 6, by = shift & 63;
    u64 low = x.word[at] >> by;
    return by && at + 1 < WORDS ? low | x.word[at + 1] << (64 - by) : low;
}

static inline Bits bits_from(u64 low, u32 shift)
{
    Bits x = bits_none();
    u32 at = shift >> 6, by = shift & 63;
    x.word[at] = low << by;
    if (by && at + 1 < WORDS) x.word[at + 1] = low >> (64 - by);
    return x;
}

static inline Bits bits_up(Bits x, u32 by)
{
    Bits up = bits_none();
    u32 words = by >> 6, rest = by & 63;
    for (u32 i = words; i < WORDS; i++)
        up.word[i] = x.word[i - words] << rest | (rest && i > words ? x.word[i - words - 1] >> (64 - rest) : 0);
    return up;
}

static inline Bits bits_down(Bits x, u32 by)
{
    Bits down = bits_none();
    u32 words = by >> 6, rest = by & 63;
    for (u32 i = 0; i + words < WORDS; i++)
        down.word[i] = x.word[i + words] >> rest
            | (rest && i + words + 1 < WORDS ? x.word[i + words + 1] << (64 - rest) : 0);
    return down;
}

static inline u64 mix(Bits x)
{
    u64 h = 0;
    for (int i = 0; i < WORDS; i += 2) h = mixed(x.word[i] ^ h, (i + 1 < WORDS ? x.word[i + 1] : 0) + h);
    return finished(h);
}

#endif

#endif
