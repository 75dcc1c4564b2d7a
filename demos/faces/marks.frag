#version 330
// The corners of a face's box, and a dot for each point, both with a dark edge.
uniform sampler2D marks;
uniform float thick;
flat in vec4 box;
flat in int face;
in vec2 place;
out vec4 color;

float outside_of(vec2 at, vec2 half_size, float radius) {  // the distance to a box with round corners
    vec2 away = abs(at) - half_size + radius;
    return length(max(away, 0.0)) + min(max(away.x, away.y), 0.0) - radius;
}

void main() {
    vec3 shade = mix(vec3(0.30, 0.95, 0.75), vec3(1.0, 0.85, 0.30), fract(float(face) * 0.381966));
    vec2 middle = (box.xy + box.zw) / 2.0, half_size = (box.zw - box.xy) / 2.0;
    vec2 at = place - middle;
    float line = abs(outside_of(at, half_size, 0.16 * half_size.x)) - thick * 0.7;
    line = max(line, max(0.55 * half_size.x - abs(at.x), 0.55 * half_size.y - abs(at.y)));  // only the corners
    float dots = 1e6;
    for (int index = 1; index < textureSize(marks, 0).x; index++) {
        vec4 point = texelFetch(marks, ivec2(index, face), 0);
        if (point.z > 0.5) dots = min(dots, length(place - point.xy) - thick * 1.3);
    }
    float away = min(line, dots);
    float light = clamp(0.5 - away, 0.0, 1.0), dark = clamp(0.5 - away / (thick * 0.9) + 0.5, 0.0, 1.0) * 0.55;
    vec3 inner = away == dots ? vec3(1.0) : shade;
    color = vec4(mix(vec3(0.02, 0.03, 0.05), inner, light), max(light, dark));
}
