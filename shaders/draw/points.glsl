//@ input X elements if VERTEX
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
//@ param float radius
//@ include marks
// A disc around each point.
flat PASSED vec2 middle;
#ifdef VERTEX
vec2 quad(int point, vec2 corner) {
    middle = mapped(vec2(X(point * numbers), X(point * numbers + 1)));
    shade = shade_of(point);
    return is_shown(point) && is_near(middle) ? middle + (corner * 2.0 - 1.0) * (radius + 1.0) : NOWHERE;
}
#else
vec4 color(ivec2 pixel) { return ink(length(place - middle) - radius); }
#endif
