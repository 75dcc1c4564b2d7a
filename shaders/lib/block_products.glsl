// The products of a tap. A block of depth has DEPTH channels: 4, or 1 to 3 that are read from planes. DEPTH is 0 if each
// channel meets its own weight alone. A pixel's data is v[p], the weights of a tap are factor[CHANNELS].
#if DEPTH == 0
#define CHANNELS 1
#define PRODUCT(d, p, k) sum[p] += v[p + k] * factor[d];
#else
#define CHANNELS DEPTH
#define PRODUCT(d, p, k) sum[p] += v[p + k][d] * factor[d];
#endif
#if DEPTH == 4
#define DEPTH_BLOCKS depth_blocks
#define FACTOR(d, unused, none) factor[d] = W_near(w, d);
#else
#define DEPTH_BLOCKS 1
#define FACTOR(d, unused, none) factor[d] = W_texel(w + d);
#endif
#if DEPTH == 1
#define DATA(at) vec4(X(at), 0.0, 0.0, 0.0)
#elif DEPTH == 2
#define DATA(at) vec4(X(at), X((at) + plane), 0.0, 0.0)
#elif DEPTH == 3
#define DATA(at) vec4(X(at), X((at) + plane), X((at) + 2 * plane), 0.0)
#else
#define DATA(at) X_texel(at)
#endif
#define TAP(k, unused, none) REPEAT(CHANNELS, FACTOR, none, none) REPEAT2(TEXELS, ADD, k, none) w += CHANNELS;
