// The mix of the four texels around a place, on a level of a texture. Beyond the edge, its texels repeat.
vec4 mixed(vec2 at, int lod, ivec2 size) {
    at -= 0.5;
    ivec2 low = ivec2(floor(at)), end = size - 1, zero = ivec2(0);
    vec2 part = at - floor(at);
    ivec2 a = min(max(low, zero), end), b = min(max(low + 1, zero), end);
    return mix(mix(texel_of(a, lod), texel_of(ivec2(b.x, a.y), lod), part.x),
               mix(texel_of(ivec2(a.x, b.y), lod), texel_of(b, lod), part.x), part.y);
}
