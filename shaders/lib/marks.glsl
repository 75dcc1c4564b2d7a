// What all marks share: a color, which rows are hidden, and places in pixels from the target's top left.
#ifdef VERTEX
#define PASSED out
#else
#define PASSED in
#endif
flat PASSED vec4 shade;
PASSED vec2 place;
const vec2 NOWHERE = vec2(1e9);
vec2 mapped(vec2 at) {
    vec3 given = vec3(at, 1.0);
    float behind = dot(map_behind.xyz, given);
    return behind > 0.0 ? vec2(dot(map_across.xyz, given), dot(map_down.xyz, given)) / behind : NOWHERE;
}
bool is_near(vec2 at) { return all(lessThan(abs(at), vec2(1e6))); }  // not NaN
bool is_shown(int row) {
#ifdef SCORES
    return float(S(row / scores_each)) > threshold;
#else
    return true;
#endif
}
// The color of a row: one of three or four numbers, one by an id, or that of all marks. A negative tint is a hue by id.
vec4 shade_of(int row) {
    int id = row / colors_each;
#ifdef COLORS
    int first = id * color_numbers;
    if (color_numbers > 1)
        return vec4(float(C(first)), float(C(first + 1)), float(C(first + 2)), 1.0)
               * vec4(1.0, 1.0, 1.0, color_numbers > 3 ? float(C(first + 3)) : tint.a);
    id = int(C(first));
#endif
    if (tint.r >= 0.0) return tint;
    float hue = fract(float(uint(id) % 1024u) * 0.618034 + 0.4) * 6.0;
    vec3 bright = min(max(abs(mod(hue + vec3(0.0, 4.0, 2.0), 6.0) - 3.0) - 1.0, 0.0), 1.0);
    return vec4(mix(vec3(1.0), bright, 0.75), tint.a);
}
// The color of a pixel whose center lies this far outside of a mark: its edge is a pixel wide.
vec4 ink(float outside) {
    float alpha = shade.a * clamp(0.5 - outside, 0.0, 1.0);
    return vec4(shade.rgb * alpha, alpha);
}
float to_segment(vec2 at, vec2 a, vec2 b) {
    vec2 along = b - a, from = at - a;
    return length(from - along * clamp(dot(from, along) / max(dot(along, along), 1e-12), 0.0, 1.0));
}
