#version 330
// A square around each face. A row of `marks` is the face's box, and then its points.
uniform sampler2D marks;
uniform vec2 size;
flat out vec4 box;
flat out int face;
out vec2 place;  // in pixels from the top left corner

void main() {
    face = gl_InstanceID;
    box = texelFetch(marks, ivec2(0, face), 0);
    vec2 margin = 0.35 * (box.zw - box.xy);  // points may lie outside of the box
    vec2 corner = vec2(gl_VertexID & 1, gl_VertexID >> 1);
    place = mix(box.xy - margin, box.zw + margin, corner);
    gl_Position = vec4(place / size * vec2(2.0, -2.0) + vec2(-1.0, 1.0), 0.0, 1.0);
}
