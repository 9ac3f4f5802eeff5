/** Deutsch. @type {import("../texts.js").Texts} */
const texts = {
  app: {
    title: "perikope",
    search: "Suchen",
    unreachable: "Der Server antwortet nicht. Läuft er noch?",
  },
  origins: {
    passage: "Passage",
    titles: "Überschriften",
    sections: "Abschnitte",
    document: "Dokument",
    neighbors: "Nachbarn",
    references: "Verweise",
    other: "Sonstiges",
  },
};
export default texts;
