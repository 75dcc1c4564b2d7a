// A texel of the caller's texture T, or of a layer of it.
vec4 texel_of(ivec2 at, int lod) {
#ifdef LAYERED
    return texelFetch(T, ivec3(at, layer), lod);
#else
    return texelFetch(T, at, lod);
#endif
}
