// The invocations that work on one result. With TOGETHER `lanes` of a work group work together, a power of two: lane k
// takes every `lanes`th piece, from the k-th on. With `across` 1 they are neighbours, which read neighbouring pieces;
// otherwise neighbours work on `across` results that lie side by side. Without TOGETHER each invocation works alone.
// TOGETHER_BY(name, join) defines a function that joins what the lanes have found, vector by vector, in a tree.
// A kernel with this text has the unit "texel, grid if SCATTERED".
#ifdef TOGETHER
#define LANES lanes
shared O_VECTOR found[64];
int lane() { return int(gl_LocalInvocationIndex) / across & (lanes - 1); }
int result_of(ivec3 at) {
    int group = at.x >> 6, me = at.x & 63;
    return group * (64 / lanes) + (across == 1 ? me / lanes : me & (across - 1));
}
#define TOGETHER_BY(name, join) \
O_VECTOR name(O_VECTOR mine) { \
    int me = int(gl_LocalInvocationIndex); \
    found[me] = mine; \
    barrier(); \
    for (int rest = lanes >> 1; rest > 0; rest >>= 1) { \
        if (lane() < rest) found[me] = join(found[me], found[me + rest * across]); \
        barrier(); \
    } \
    O_VECTOR all = found[me - lane() * across]; \
    barrier(); \
    return all; \
}
#else
#define LANES 1
#define TOGETHER_BY(name, join) O_VECTOR name(O_VECTOR mine) { return mine; }
int lane() { return 0; }
int result_of(ivec3 at) { return at.x; }
#endif
