// The quotient of numbers from 0, below 2^22. Llvmpipe divides whole numbers one by one, and reciprocals eight at once;
// one may be off by one.
ivec2 quotient(ivec2 n, ivec2 d) {
    ivec2 q = ivec2(vec2(n) / vec2(d));
    ivec2 rest = n - q * d;
    return q + ivec2(greaterThanEqual(rest, d)) - ivec2(lessThan(rest, ivec2(0)));
}
// The place in whole numbers, as perframe/textures/nearest.py counts it: ties are the same on every GPU.
ivec2 nearest_of(ivec2 i) {
    ivec2 first = ivec2(near_across.x, near_down.x), whole = ivec2(near_across.y, near_down.y);
    ivec2 rest = ivec2(near_across.z, near_down.z), part = ivec2(near_across.w, near_down.w);
    return first + i * whole + quotient(rest + i * part, near_parts);
}
