#version 330
// A small triangle around one place of the output: instance `i` covers place `i` of those that replaced rows touch.
$declarations
$touched
void main() {
    int place = touched_unit(gl_InstanceID), across = COLUMN_OF(-1) + 1;
    int places = ((O_size + 3) / 4 + TEXELS - 1) / TEXELS;
    vec2 extent = vec2(min(places, across), (places + across - 1) / across);
    vec2 corner = vec2(gl_VertexID == 1 ? 0.9 : gl_VertexID == 2 ? 0.5 : 0.1, gl_VertexID == 2 ? 0.9 : 0.2);
    vec2 at = (vec2(COLUMN_OF(place), ROW_OF(place)) + corner) / extent * 2.0 - 1.0;
    gl_Position = place < 0 ? vec4(2.0, 2.0, 2.0, 1.0) : vec4(at, 0.0, 1.0);
}
