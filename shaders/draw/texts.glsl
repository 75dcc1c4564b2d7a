//@ input R elements if VERTEX
//@ input G elements if VERTEX
//@ input S elements if SCORES
//@ input C elements if COLORS
//@ texture T
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
//@ param float height
//@ param float cell
//@ include marks
// Letters of an atlas, side by side on a plate above a region, or within it where the target ends. A letter has a row,
// and its left, its width and its distance from the text's begin in the atlas.
PASSED vec2 inked;
#ifdef VERTEX
//@ include region
vec2 quad(int letter, vec2 corner) {
    int row = int(G(letter * 4));
    float left = float(G(letter * 4 + 1)), wide = float(G(letter * 4 + 2)), begin = float(G(letter * 4 + 3));
    Region region = region_of(row);
    vec2 a = mapped(within(region, vec2(0.0, 0.0))), b = mapped(within(region, vec2(1.0, 0.0)));
    vec2 c = mapped(within(region, vec2(1.0, 1.0))), d = mapped(within(region, vec2(0.0, 1.0)));
    vec2 at = floor(min(min(a, b), min(c, d)) + 0.5);
    shade = shade_of(row);
    inked = vec2(left + wide * corner.x, cell * corner.y);
    if (!is_shown(row) || !is_near(at)) return NOWHERE;
    at = max(vec2(at.x, at.y < height ? at.y : at.y - height), 0.0);
    return at + vec2(begin + wide * corner.x, cell * corner.y) * (height / cell);
}
#else
vec4 color(ivec2 pixel) {
    float covered = texture(T, inked / vec2(textureSize(T, 0))).r;
    float light = dot(shade.rgb, vec3(0.299, 0.587, 0.114)) > 0.5 ? 0.0 : 1.0;
    return vec4(mix(shade.rgb, vec3(light), covered), 1.0) * shade.a;
}
#endif
