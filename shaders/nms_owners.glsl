//@ input S
//@ input P
//@ input M
//@ param int boxes
//@ param int picks
//@ param int words
//@ param float least
//@ long
// The number of the pick to which a box belongs: itself, or the first that overlaps it. -1 if there is none.
int element(int o) {
    int row = o / boxes * picks, j = o % boxes;
    if (!(S(o) > least)) return -1;
    for (int pick = 0; pick < picks; ++pick) {
        int i = int(P(row + pick));
        if (i < 0 || i > j) return -1;
        if (i == j || (int(M((o * words << 2) + (i >> 5))) >> (i & 31) & 1) == 1) return pick;
    }
    return -1;
}
