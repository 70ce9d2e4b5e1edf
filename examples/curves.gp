# examples/curves.gp - draws the loss and the updated rows against time. data is the output of train_words
# --csv, and picture the SVG file that is written.
# One below the other, so that the text is large enough on a phone.
set terminal svg size 560,720 font 'sans-serif,15' background '#ffffff'
set output picture
set datafile separator ','
set xlabel 'seconds'
set grid xtics ytics lc rgb '#dddddd'
set key top right
set xrange [0:*]

# Column 1 is the strategy, 2 the seconds, 3 the loss, and 5 the rows for each second. The first sample of a
# strategy is taken before any row is updated, so it has no rows for each second.
curve(name) = "< awk -F, '$1 == \"" . name . "\"' " . data
rates(name) = "< awk -F, '$1 == \"" . name . "\" && $4 > 0' " . data
set multiplot layout 2,1
set title 'loss of the test pairs'
plot curve('mirrored') using 2:3 with lines lw 2.5 dt 2 lc rgb '#2980b9' title 'mirrored', \
     curve('asynchronous') using 2:3 with lines lw 2.5 lc rgb '#c0392b' title 'asynchronous'
set title 'updated rows, millions for each second'
set yrange [0:*]
set key center right
plot rates('mirrored') using 2:($5 / 1e6) with lines lw 2.5 dt 2 lc rgb '#2980b9' title 'mirrored', \
     rates('asynchronous') using 2:($5 / 1e6) with lines lw 2.5 lc rgb '#c0392b' title 'asynchronous'
unset multiplot
