#version 330
// Draws each instance of the triangle on a sheet of its own, for drivers whose vertex shaders cannot choose it.
layout(triangles) in;
layout(triangle_strip, max_vertices = 3) out;
flat in int instance[];
flat out int sheet;
void main() {
    for (int k = 0; k < 3; ++k) {
        gl_Layer = sheet = instance[k];
        gl_Position = gl_in[k].gl_Position;
        EmitVertex();
    }
}
