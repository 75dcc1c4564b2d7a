#version 330
// A marble whose color comes from a texture, left of the line, or from a network, right of it. Two discs magnify the same
// spot of both. Each pixel calls the network once at most.
uniform sampler3D texels;  // around, from pole to pole, over time
uniform vec2 size;         // of all that is drawn into, in pixels
uniform float split;       // the line, in pixels from the left
uniform float phase;       // of the pattern's loop, 0..1
uniform float turn;        // of the marble, in radians
uniform float disc;        // the radius of a disc, in pixels
uniform float magnify;
uniform vec2 spot;         // that the discs magnify, in radii of the marble
uniform float zoom;
uniform vec2 focus;        // the middle of the picture, in heights of the window from that of the marble
out vec4 color;

//@ network
const float TAU = 6.2831853;
const float RADIUS = 0.40;  // of the marble, in heights of the window
const vec3 LIGHT = vec3(-0.48, 0.66, 0.58);

vec3 turned(vec3 p) {
    float tilt = 0.35;
    p = vec3(p.x, cos(tilt) * p.y + sin(tilt) * p.z, cos(tilt) * p.z - sin(tilt) * p.y);
    return vec3(cos(turn) * p.x + sin(turn) * p.z, p.y, cos(turn) * p.z - sin(turn) * p.x);
}

vec3 backdrop(vec2 q) {
    vec3 paper = mix(vec3(0.115, 0.125, 0.15), vec3(0.035, 0.04, 0.055), smoothstep(0.2, 2.6, length(q - vec2(-0.5, 0.5))));
    float shadow = exp(-1.8 * dot(q - vec2(0.28, -0.72), q - vec2(0.28, -0.72)) * vec2(1.0, 1.6).y);
    return paper * (1.0 - 0.6 * shadow);
}

// The marble around the point q of its disc, whose radius is 1; a pixel is `pixel` wide.
vec3 marble(vec2 q, float pixel, bool is_network) {
    float off = length(q), cover = clamp((1.0 - off) / pixel + 0.5, 0.0, 1.0);
    vec3 behind = backdrop(q);
    if (cover == 0.0) return behind;
    vec2 inside = off > 0.9999 ? q * (0.9999 / off) : q;
    vec3 normal = vec3(inside, sqrt(1.0 - dot(inside, inside))), place = turned(normal), ink;
    if (is_network) {
        network(place, phase, ink);
    } else {
        ink = texture(texels, vec3(atan(place.z, place.x) / TAU, asin(place.y) / (TAU / 2.0) + 0.5, phase)).rgb;
    }
    vec3 light = normalize(LIGHT), mirrored = reflect(vec3(0.0, 0.0, -1.0), normal);
    float lit = 0.40 + 0.80 * max(0.0, 0.25 + 0.75 * dot(normal, light));
    float rim = pow(1.0 - normal.z, 3.0);
    vec2 window = mirrored.xy / max(mirrored.z + 1.0, 0.05) - vec2(-0.36, 0.52);
    float pane = smoothstep(0.155, 0.115, abs(window.x)) * smoothstep(0.19, 0.15, abs(window.y));
    pane *= smoothstep(0.004, 0.016, abs(window.x)) * smoothstep(0.004, 0.016, abs(window.y));
    vec3 shown = ink * ink * lit * (1.0 - 0.5 * rim) + vec3(0.30, 0.38, 0.50) * rim * 0.55 + vec3(0.42) * pane;
    return mix(behind, sqrt(shown), cover);
}

void main() {
    vec2 place = gl_FragCoord.xy, middle = size * 0.5;
    float unit = RADIUS * size.y;
    vec2 q = ((place - middle) / zoom + focus * size.y) / unit;
    float pixel = 1.0 / (unit * zoom);
    bool is_network = place.x >= split;

    float side = place.x < middle.x ? -1.0 : 1.0;
    vec2 from_disc = place - vec2(side < 0.0 ? 1.15 * disc : size.x - 1.15 * disc, middle.y);
    float rim = length(from_disc) - disc;
    bool in_disc = rim < 0.0;
    if (in_disc) {
        q = spot + from_disc * pixel / magnify;
        pixel /= magnify;
        is_network = side > 0.0;
    }
    vec3 shown = marble(q, pixel, is_network);
    if (!in_disc) {
        float beside = abs(place.x - split) - 1.0;
        float line = clamp(0.5 - beside, 0.0, 1.0) * smoothstep(1.25, 1.1, length(q) * (zoom > 1.0 ? 0.0 : 1.0));
        shown *= 1.0 - 0.35 * exp(-max(beside, 0.0) / (size.y / 240.0));
        shown = mix(shown, vec3(1.0), line);
        float frame = abs(length(q - spot) / pixel - disc / magnify) - 1.0;  // what the discs magnify
        shown = mix(shown, vec3(1.0), clamp(0.5 - frame, 0.0, 1.0));
        shown *= 1.0 - 0.5 * exp(-max(rim, 0.0) / (disc * 0.06));
    }
    shown = mix(shown, vec3(0.96), clamp(1.5 - abs(rim + 1.5), 0.0, 1.0));
    color = vec4(shown, 1.0);
}
