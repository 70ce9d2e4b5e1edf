// What the search of the site does differently from that of Sphinx. A name of several words is found without
// its prefix, and with any separators: allreduce, all-reduce and "all reduce" are ditto_all_reduce. The name
// that was asked for is the first result, and decisions are the last ones.
const lettersOf = (text) => text.toLowerCase().replace(/[^a-z0-9]/g, "").replace(/^ditto/, "");

// The name with the letters of the text, or undefined. Single words are searched as they are.
const nameOf = (text) => Object.values(Search._index.objects).flat().map((entry) => entry[4].toLowerCase())
    .find((name) => /^ditto_.*_/.test(name) && lettersOf(name) === lettersOf(text));

// Both are declared by var, because Sphinx declares them in this way if they are missing.
var splitQuery = (query) => {
    const words = query.split(/[^\p{Letter}\p{Number}_]+/u).filter((word) => word);
    const name = nameOf(query);
    return name ? [name] : words.map((word) => nameOf(word) || word);
};

var Scorer = {
    score: ([page, title, , description, score]) => {
        const query = new URLSearchParams(window.location.search).get("q");
        const isAsked = description && lettersOf(title) === lettersOf(query);
        return score + (isAsked ? 1000 : 0) - (page.startsWith("docs/adr/") ? 1000 : 0);
    },
    // The numbers of Sphinx.
    objNameMatch: 11,
    objPartialMatch: 6,
    objPrio: { 0: 15, 1: 5, 2: -5 },
    objPrioDefault: 0,
    title: 15,
    partialTitle: 7,
    term: 5,
    partialTerm: 2,
};
