// A place in a region that is not upright, by the rows of a matrix. A place behind the picture is far from all others.
vec2 warp(vec2 at) {
    vec3 given = vec3(at, 1.0);
    float behind = dot(warp_behind.xyz, given);
    if (behind <= 0.0) return vec2(-1e9);
    return vec2(dot(warp_across.xyz, given), dot(warp_down.xyz, given)) / behind;
}
