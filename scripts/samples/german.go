package main

import "slices"

// translation is what an article has in another language.
type translation struct {
	Title   string `json:"title"`
	Summary string `json:"summary"`
}

// german is what the articles of a section are called in German: subjects and summaries in the order of the section's.
type german struct{ form, subjects, summaries []string }

// inGerman translates an article without a choice of its own, so that the rest of the samples stays what it is.
func inGerman(sec section, subject, summary string, n int) map[string]translation {
	words := germanOf()[sec.name]
	return map[string]translation{"de": {
		Title:   words.form[n%len(words.form)] + words.subjects[slices.Index(sec.subjects, subject)],
		Summary: words.summaries[slices.Index(sec.summaries, summary)],
	}}
}

func germanOf() map[string]german {
	return map[string]german{
		"walking": {
			form: []string{"Unterwegs: ", "Zu Fuß: ", "Notizen: "},
			subjects: []string{
				"der Uferweg", "ein Grat im Winter", "die alte Bahnstrecke", "die Hafenmauer", "ein Forstweg", "die Salzwiesen",
				"der lange Hügel", "ein leerer Strand", "der Weg der Viehtreiber", "eine Stadt im Morgengrauen", "der Kanal", "das Moor",
			},
			summaries: []string{
				"Ein leichter Tag draußen, mit mehr Wetter als geplant.", "Neun Meilen, zwei Brote, einmal falsch abgebogen.",
				"Eine Route für Leute, die keine Routen mögen.", "Was mitkommt, was dableibt, und wo es Tee gibt.",
			},
		},
		"cooking": {
			form: []string{"Gekocht: ", "Für sechs: ", "Vom Herd: "},
			subjects: []string{
				"Roggenbrot", "ein Topf Bohnen", "Zwiebelsuppe", "eingelegte Pflaumen", "flache Knödel", "Sellerie aus dem Ofen", "Linsen",
				"ein kaltes Omelett", "Kartoffelpuffer", "Apfelkraut", "Gerste", "eine Dose Sardinen",
			},
			summaries: []string{
				"Vier Zutaten und ein Nachmittag.", "Man kann kaum etwas falsch machen, und ich habe es geschafft.",
				"Am zweiten Tag besser, am dritten am besten.", "Was man mit dem macht, was übrig ist.",
			},
		},
		"mending": {
			form: []string{"Repariert: ", "Gerettet: ", "Noch gut: "},
			subjects: []string{
				"ein Wollpullover", "die quietschende Tür", "ein Laufrad", "der Küchenstuhl", "eine Regenjacke", "das stumpfe Messer",
				"Wanderschuhe", "eine Papierlampe", "das Gartentor", "ein tropfender Hahn", "ein altes Radio", "ein zerrissenes Zelt",
			},
			summaries: []string{
				"Es dauerte zehn Minuten, nachdem ich es ein Jahr lang aufgeschoben hatte.", "Ein Flicken, den man sehen soll.",
				"Weniger Können als Geduld, und kein Leim.", "Was man kauft, was man leiht, und wann man aufhört.",
			},
		},
	}
}
