/** English. Texts are grouped by the component that shows them. Texts with values are functions. */
export default {
  app: {
    title: "perikope",
    search: "Search",
    unreachable: "The server does not answer. Is it still running?",
  },
  origins: {
    passage: "passage",
    titles: "titles",
    sections: "sections",
    document: "document",
    neighbors: "neighbours",
    references: "references",
    other: "other",
  },
};
