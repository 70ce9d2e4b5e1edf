# bench/performance.awk - makes Markdown tables of the CSV of ditto-bench. Columns are found by name.
BEGIN { FS = "," }

/^#/ { machine = machine substr($0, 3) "\n"; next }
$1 == "bench" { for (i = 1; i <= NF; i++) at[$i] = i; next }
NF < 14 { next }

{
    key = $1
    split("replicas dtype op in_place bytes devices skew_us turns", part, " ")
    for (i = 1; i in part; i++) key = key SUBSEP $at[part[i]]
    if (!(key in first)) { first[key] = ++rows; keys[rows] = key }
    who = $at["algorithm"]
    ns[key, who] = $at["ns_median"]
    noisy[key, who] = $at["noisy"]
    cpu_ratio[key, who] = $at["cpu_ratio"]
    if (who == "ditto") { bound[key] = $at["bound_ns"]; form[key] = $at["bound_form"] }
}

# Returns nanoseconds as microseconds with two or three digits, or "" if nothing was measured.
function us(value) {
    if (value == "" || value <= 0) return ""
    value /= 1000
    return value < 10 ? sprintf("%.2f", value) : value < 100 ? sprintf("%.1f", value) : sprintf("%.0f", value)
}
function ratio(a, b) { return a > 0 && b > 0 ? sprintf(a / b < 0.1 ? "%.2g" : "%.2f", a / b) : "" }
function least(a, b) { return a > 0 && (!(b > 0) || a < b) ? a : b }
function size_of(bytes) {
    return bytes >= 1048576 ? bytes / 1048576 " MiB" : bytes >= 1024 ? bytes / 1024 " KiB" : bytes " B"
}
# Returns the text, in bold if the value is bad.
function marked(text, bad) { return text != "" && bad ? "**" text "**" : text }

function work_of(key,    f, name) {
    split(key, f, SUBSEP)
    name = f[1]
    if (f[6] > 0) name = name " " size_of(f[6])
    if (f[3] != "" && f[3] != "f32") name = name " " f[3]
    if (f[5] != "" && name !~ /^broadcast/) name = name (f[5] ? ", in place" : ", out of place")
    if (f[9] == 1) name = name ", roots in turn"
    if (f[1] == "parallel-for") name = name ", " f[7] (f[7] > 1 ? " PUs" : " PU")
    return name
}

function is_skew(key) { return key ~ /^skew/ }
function is_life(key) { return key ~ /^(create|rest)/ }

function row_of(cells, n,    i, line) {
    line = "|"
    for (i = 1; i <= n; i++) line = line " " cells[i] " |"
    print line
}

function main_row(key,    f, c, d, mpi, omp, share, i) {
    split(key, f, SUBSEP)
    d = ns[key, "ditto"]
    mpi = least(ns[key, "openmpi"], ns[key, "mpich"])
    omp = least(ns[key, "libgomp"], ns[key, "libomp"])
    share = ratio(bound[key], d)
    c[1] = work_of(key)
    c[2] = f[2]
    c[3] = us(d)
    c[4] = us(bound[key])
    c[5] = form[key]
    for (i = 1; i <= peers; i++) c[5 + i] = us(ns[key, peer[i]])
    c[11] = marked(share, share + 0 < 0.85)
    c[12] = marked(ratio(d, mpi), d > mpi)
    c[13] = marked(ratio(d, omp), d > omp)
    c[14] = ratio(d, ns[key, "gloo"])
    c[15] = noisy[key, "ditto"] == 1 ? "noisy" : ""
    if (d > 0 && ns[key, "ditto-plain"] > 0)
        c[15] = c[15] " " ratio(d, ns[key, "ditto-plain"]) " of the plain call"
    row_of(c, 15)
}

function skew_row(key,    f, c, i, cpu) {
    split(key, f, SUBSEP)
    c[1] = work_of(key)
    c[2] = f[8]
    # gloo, the last peer, is left out, because the CPU seconds of its own threads would be missing.
    for (i = 0; i < peers; i++) {
        c[3 + i] = us(ns[key, i == 0 ? "ditto" : peer[i]])
        cpu = cpu_ratio[key, i == 0 ? "ditto" : peer[i]]
        c[3 + peers + i] = cpu != "" ? sprintf("%.2f", cpu) : ""
    }
    row_of(c, 2 + 2 * peers)
}

function life_row(key,    f, c) {
    split(key, f, SUBSEP)
    c[1] = f[1] == "create" ? "create and destroy" : "CPU time in one second at rest"
    c[2] = f[2]
    c[3] = sprintf("%.2f", ns[key, "ditto"] / 1e6)
    row_of(c, 3)
}

function heading(text,    words, n, i, line) {
    n = split(text, words, ", ")
    row_of(words, n)
    for (i = 1; i <= n; i++) words[i] = "---"
    row_of(words, n)
}

END {
    peers = split("libgomp libomp openmpi mpich gloo", peer, " ")
    print "\n```text\n" machine "```\n"
    print "Times are in microseconds. Bold numbers are below 85 % of the bound, or slower than the best peer of a" \
          " kind.\n"
    heading("work, replicas, ditto, bound, its form, libgomp, libomp, Open MPI, MPICH, gloo, bound / ditto, " \
            "ditto / best MPI, ditto / best OpenMP, ditto / gloo,  ")
    for (r = 1; r <= rows; r++) if (!is_skew(keys[r]) && !is_life(keys[r])) main_row(keys[r])
    print "\nIn each repetition another replica is late. The times are microseconds per repetition, with the"
    print "delay. The CPU times are multiples of those of the same work without the collective.\n"
    heading("work, late by (us), ditto, libgomp, libomp, Open MPI, MPICH, " \
            "CPU: ditto, libgomp, libomp, Open MPI, MPICH")
    for (r = 1; r <= rows; r++) if (is_skew(keys[r])) skew_row(keys[r])
    print ""
    heading("a strategy's life, replicas, ms")
    for (r = 1; r <= rows; r++) if (is_life(keys[r])) life_row(keys[r])
    print ""
}
