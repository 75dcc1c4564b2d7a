//@ input X elements if not VERTEX
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
//@ param ivec2 extent
//@ param ivec4 box
//@ param float edge
//@ param int sharp
//@ include marks
// A mask tints the pixels that it covers, between its elements in proportion; if sharp, those above the edge. The map is
// that from the target to the mask.
flat PASSED int plane;
#ifdef VERTEX
vec2 quad(int row, vec2 corner) {
    plane = row;
    shade = shade_of(row);
    return is_shown(row) ? vec2(target) * corner : NOWHERE;
}
#else
float at_(ivec2 p) {
    p = box.xy + clamp_to_edge(p - box.xy, box.zw);
    return float(X((plane * extent.y + p.y) * extent.x + p.x));
}
vec4 color(ivec2 pixel) {
    vec2 at = mapped(place), low = floor(at - 0.5), part = at - 0.5 - low;
    vec2 right = dFdx(at), down = dFdy(at);
    ivec2 p = ivec2(min(max(low, -1e6), 1e6));
    float a = at_(p), b = at_(p + ivec2(1, 0)), c = at_(p + ivec2(0, 1)), d = at_(p + 1);
    float value = mix(mix(a, b, part.x), mix(c, d, part.x), part.y);
    // not fwidth(value): pixels beside the triangle may not read tensors
    vec2 slopes = vec2(mix(b - a, d - c, part.y), mix(c - a, d - b, part.x));
    float slope = max(abs(dot(slopes, right)) + abs(dot(slopes, down)), 1e-6);
    if (!(all(greaterThanEqual(at, vec2(box.xy))) && all(lessThan(at, vec2(box.xy + box.zw))))) discard;
    float alpha = shade.a * min(max(sharp == 1 ? (value - edge) / slope + 0.5 : value, 0.0), 1.0);
    return alpha > 0.0 ? vec4(shade.rgb * alpha, alpha) : vec4(0.0);  // NaN covers nothing
}
#endif
