//@ input R elements if VERTEX
//@ input S elements if SCORES
//@ input C elements if COLORS
//@ param ivec2 target
//@ param int flipped
//@ param vec4 map_across
//@ param vec4 map_down
//@ param vec4 map_behind
//@ param vec4 tint
//@ param int color_numbers
//@ param int colors_each
//@ param float threshold
//@ param int scores_each
//@ param int numbers
//@ param float width
//@ include marks
// The outline of a region: four lines between its corners.
flat PASSED vec4 upper;
flat PASSED vec4 lower;
#ifdef VERTEX
//@ include region
vec2 quad(int row, vec2 corner) {
    Region region = region_of(row);
    vec2 a = mapped(within(region, vec2(0.0, 0.0))), b = mapped(within(region, vec2(1.0, 0.0)));
    vec2 c = mapped(within(region, vec2(1.0, 1.0))), d = mapped(within(region, vec2(0.0, 1.0)));
    shade = shade_of(row);
    upper = vec4(a, b);
    lower = vec4(c, d);
    if (!is_shown(row) || !is_near(a) || !is_near(b) || !is_near(c) || !is_near(d)) return NOWHERE;
    vec2 margin = vec2(width * 0.5 + 1.0);
    return mix(min(min(a, b), min(c, d)) - margin, max(max(a, b), max(c, d)) + margin, corner);
}
#else
vec4 color(ivec2 pixel) {
    float sides = min(to_segment(place, upper.xy, upper.zw), to_segment(place, lower.xy, lower.zw));
    float others = min(to_segment(place, upper.zw, lower.xy), to_segment(place, lower.zw, upper.xy));
    return ink(min(sides, others) - width * 0.5);
}
#endif
