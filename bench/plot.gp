# bench/plot.gp - draws the time of all-reduce against its size. data is the CSV file of ditto-bench, and
# picture the SVG file that is written.
# One below the other, so that the text is large enough on a phone.
set terminal svg size 560,860 font 'sans-serif,15' background '#ffffff'
set output picture
set datafile separator ','
set logscale xy
set format x '%.0b%B'
set format y '%.7g'
set xtics ('8' 8, '128' 128, '2K' 2048, '32K' 32768, '512K' 524288, '8M' 8388608, '128M' 134217728)
set xlabel 'bytes'
set ylabel 'us'
set grid xtics ytics lc rgb '#dddddd'
set key bottom right
set xrange [5:3e8]
set yrange [0.1:*]

# Column 2 is the contender, 6 in place, 7 the bytes, 10 the median ns, 13 the bound in ns, and 22 the
# hand-over. If a size was measured in several modes of the machine, the one with the slowest hand-over is
# drawn.
of(who, place) = sprintf("$1 == \"all-reduce\" && $2 == \"%s\" && $6 == %d", who, place)
slowest = " && !($22 + 0 < most[$7] + 0) { most[$7] = $22; row[$7] = $0 } END { for (b in row) print row[b] }"
rows(who, place) = "< awk -F, '" . of(who, place) . slowest . "' " . data . " | sort -t, -k7n"
set multiplot layout 2,1
do for [place in '1 0'] {
    set title (place eq '1' ? 'all-reduce, in place' : 'all-reduce, out of place').', 2 replicas, f32 SUM'
    p = int(place)
    plot rows('ditto', p) using 7:($10 / 1e3) with linespoints lw 2.5 pt 7 ps 0.6 lc rgb '#c0392b' title 'ditto', \
         rows('ditto', p) using 7:($13 / 1e3) with lines lw 1.5 dt 2 lc rgb '#000000' title 'bound', \
         rows('libgomp', p) using 7:($10 / 1e3) with linespoints pt 4 ps 0.5 lc rgb '#27ae60' title 'libgomp', \
         rows('libomp', p) using 7:($10 / 1e3) with linespoints pt 6 ps 0.5 lc rgb '#16a085' title 'libomp', \
         rows('openmpi', p) using 7:($10 / 1e3) with linespoints pt 8 ps 0.5 lc rgb '#2980b9' title 'Open MPI', \
         rows('mpich', p) using 7:($10 / 1e3) with linespoints pt 10 ps 0.5 lc rgb '#8e44ad' title 'MPICH', \
         rows('gloo', p) using 7:($10 / 1e3) with linespoints pt 12 ps 0.5 lc rgb '#7f8c8d' title 'gloo'
}
unset multiplot
