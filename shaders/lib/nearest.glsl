// The place in whole numbers, as perframe/textures/nearest.py counts it: ties are the same on every GPU.
ivec2 nearest_of(ivec2 i) {
    ivec2 first = ivec2(near_across.x, near_down.x), whole = ivec2(near_across.y, near_down.y);
    ivec2 rest = ivec2(near_across.z, near_down.z), part = ivec2(near_across.w, near_down.w);
    return first + i * whole + (rest + i * part) / near_parts;
}
