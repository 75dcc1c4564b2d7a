#version 330
// Dusk, and the hawk with the place around it that creatures shun.
uniform vec2 size;
uniform vec2 extent;
uniform vec3 hawk;
out vec4 color;

void main() {
    vec2 at = gl_FragCoord.xy / size;
    vec3 shown = mix(vec3(0.13, 0.12, 0.24), vec3(0.05, 0.08, 0.16), at.y);
    shown += vec3(0.09, 0.05, 0.05) * exp(-6.0 * at.y);
    float away = length((at * 2.0 - 1.0) * extent - hawk.xy);
    float pixel = 2.0 * extent.y / size.y;
    shown += vec3(0.35, 0.07, 0.10) * hawk.z * exp(-away * away / 0.035);
    shown = mix(shown, vec3(1.0, 0.86, 0.62), clamp(0.5 - (away - 0.022) / pixel, 0.0, 1.0));
    color = vec4(shown, 1.0);
}
