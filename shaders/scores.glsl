//@ input S texels
//@ input A elements if ADDED
//@ input K elements if CHOSEN
//@ param ivec4 shape[2]
//@ param ivec4 strides[4]
//@ param ivec2 base
//@ param int rank
//@ param float softcap
//@ param float fill
//@ param int keeps
//@ unit texel
// The scores of attention: capped, with A added, and `fill` wherever K is not `keeps`. The dims are (batch..., row, key).
//@ include strides
vec4 texel(int t) {
    vec4 x = S_texel(t);
#ifdef CAPPED
    for (int k = 0; k < 4; ++k) x[k] = softcap * tanh(x[k] / softcap);
#endif
#ifdef ADDED
    x += A_at(base.x + strided_four(0, t * 4));
#endif
#ifdef CHOSEN
    bvec4 kept = notEqual(K_at(base.y + strided_four(1, t * 4)), ivec4(0));
    x = mix(vec4(fill), x, equal(ivec4(kept), ivec4(keeps)));
#endif
    return x;
}
