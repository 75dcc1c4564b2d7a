#version 330
// Bilinear | network, with a line between them, and a loupe of two discs that magnify the place under the mouse in both.
uniform sampler2D small;  // the frame as it was rendered; the bottom in the first row
uniform sampler2D large;  // the network's; the top in the first row
uniform vec2 size;        // of all that is drawn into, in pixels; places are pixels from the top left corner
uniform float split;
uniform vec2 mouse;
uniform vec2 middle;      // of the loupe
uniform float radius;     // of a disc
out vec4 color;

const float ZOOM = 6.0;

vec3 bilinear(vec2 place) { return texture(small, vec2(place.x, size.y - place.y) / size).rgb; }
vec3 network(vec2 place) { return texture(large, place / size).rgb; }

void main() {
    vec2 place = vec2(gl_FragCoord.x, size.y - gl_FragCoord.y);
    vec3 shown = place.x < split ? bilinear(place) : network(place);
    float beside = abs(place.x - split) - 1.0;
    shown *= 1.0 - 0.45 * exp(-max(beside, 0.0) / (size.y / 180.0));
    shown = mix(shown, vec3(1.0), clamp(0.5 - beside, 0.0, 1.0));

    vec2 from_mouse = abs(place - mouse);  // the place that the discs magnify, as wide as a disc shows it
    float frame = abs(length(from_mouse) - radius / ZOOM) - 1.0;
    shown = mix(shown, vec3(1.0), clamp(0.5 - frame, 0.0, 1.0));

    for (int side = -1; side <= 1; side += 2) {
        vec2 off = place - middle - vec2(1.04 * radius * float(side), 0.0);
        float rim = length(off) - radius;
        if (rim > radius * 0.2) continue;
        vec2 pixel = floor(mouse + off / ZOOM) + 0.5;
        vec3 inside = side < 0 ? bilinear(pixel) : network(pixel);
        vec3 outside = shown * (1.0 - 0.5 * exp(-max(rim, 0.0) / (radius * 0.06)));
        float ring = abs(rim + 1.5) - 1.5;
        shown = mix(mix(inside, outside, clamp(rim + 0.5, 0.0, 1.0)), vec3(1.0), clamp(0.5 - ring, 0.0, 1.0));
    }
    color = vec4(shown, 1.0);
}
