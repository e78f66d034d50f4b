package main

import (
	"fmt"
	"strings"
	"time"
)

const (
	authorCount  = 18
	articleCount = 240
)

type author struct {
	Slug    string `json:"slug"`
	Name    string `json:"name"`
	Bio     string `json:"bio"`
	Email   string `json:"email"`
	Website string `json:"website,omitempty"`
	Since   string `json:"since"`
	Active  bool   `json:"active"`
	Links   []link `json:"links,omitempty"`
}

type link struct {
	Service string `json:"service"`
	URL     string `json:"url"`
}

type article struct {
	Title        string   `json:"title"`
	Slug         string   `json:"slug"`
	Summary      string   `json:"summary"`
	Body         string   `json:"body"`
	Author       string   `json:"author"`
	Status       string   `json:"status"`
	Active       bool     `json:"active"`
	PublishedAt  string   `json:"publishedAt,omitempty"`
	UnpublishAt  string   `json:"unpublishAt,omitempty"`
	Section      string   `json:"section"`
	Cover        string   `json:"cover,omitempty"`
	Tags         []string `json:"tags"`
	Minutes      int      `json:"minutes"`
	Views        int      `json:"views"`
	SEO          seo      `json:"seo"`
	Related      []string `json:"related,omitempty"`
	Notes        []note   `json:"notes,omitempty"`
	ImportedFrom string   `json:"importedFrom,omitempty"`

	I18n map[string]translation `json:"_i18n,omitempty"`
}

type seo struct {
	Title       string `json:"title"`
	Description string `json:"description"`
	NoIndex     bool   `json:"noindex"`
}

type note struct {
	By   string `json:"by"`
	Text string `json:"text"`
	At   string `json:"at"`
}

type page struct {
	Slug     string  `json:"slug"`
	Title    string  `json:"title"`
	Active   bool    `json:"active"`
	Position int     `json:"position"`
	Blocks   []block `json:"blocks"`
}

type settings struct {
	Title   string `json:"title"`
	Tagline string `json:"tagline"`
	Contact string `json:"contact"`
	PerPage int    `json:"perPage"`

	I18n map[string]map[string]string `json:"_i18n"`
}

type block struct {
	Kind string         `json:"kind"`
	Data map[string]any `json:"data"`
}

// blog gives the files of the blog, in the order in which they can be loaded: who is referred to comes first.
func blog(s source) map[string][]any {
	authors, slugs := blogAuthors(s)
	return map[string][]any{
		"01-authors.ndjson":  authors,
		"02-articles.ndjson": articles(s, slugs),
		"03-pages.ndjson":    pages(),
		"04-settings.ndjson": {settings{
			Title: "Field Notes", Tagline: "Walking, cooking and mending things", Contact: "desk@fieldnotes.example", PerPage: 12,
			I18n: map[string]map[string]string{"de": {"tagline": "Gehen, kochen, reparieren"}},
		}},
	}
}

func blogAuthors(s source) (records []any, slugs []string) {
	firsts, lasts := s.some(firstNames(), authorCount), s.some(lastNames(), authorCount)
	for i := range authorCount {
		name := firsts[i] + " " + lasts[i]
		a := author{
			Slug: slug(name), Name: name, Email: strings.ToLower(firsts[i]) + "@fieldnotes.example", Active: i != authorCount-1,
			Bio: fmt.Sprintf("%s writes about %s and %s, and mends things in between.", firsts[i],
				s.pick(walking().subjects), s.pick(cooking().subjects)),
			Since: stamp(time.Date(2018+s.IntN(6), time.Month(1+s.IntN(12)), 1+s.IntN(28), 0, 0, 0, 0, time.UTC)),
		}
		if s.chance(40) {
			a.Website = "https://" + slug(lasts[i]) + ".example/"
		}
		if s.chance(60) {
			a.Links = append(a.Links, link{"mastodon", "https://social.example/@" + slug(firsts[i])})
		}
		records, slugs = append(records, a), append(slugs, a.Slug)
	}
	return records, slugs
}

func articles(s source, authors []string) []any {
	var records []any
	var slugs []string
	taken := map[string]bool{}
	all := sections()
	for i := 0; len(records) < articleCount; i++ {
		sec := all[i%len(all)]
		subject := s.pick(sec.subjects)
		title := fmt.Sprintf(s.pick(sec.titles), subject)
		title = strings.ToUpper(title[:1]) + title[1:]
		if taken[title] {
			continue
		}
		taken[title] = true
		a := article{
			Title: title, Slug: slug(title), Summary: s.pick(sec.summaries), Body: body(s, sec, subject), Author: s.pick(authors),
			Active: true, Section: sec.name, Cover: cover(sec.name, i), Tags: s.some(sec.tags, 2+s.IntN(3)), Minutes: 2 + s.IntN(9),
		}
		a.SEO = seo{Title: title, Description: a.Summary, NoIndex: s.chance(5)}
		if len(slugs) > 3 {
			a.Related = s.some(slugs, s.IntN(3))
		}
		if len(records)%3 != 0 { // some are still to be translated
			a.I18n = inGerman(sec, subject, a.Summary, len(records))
		}
		publish(s, &a, len(records))
		records, slugs = append(records, a), append(slugs, a.Slug)
	}
	return records
}

// cover chooses a picture of the media library. A few articles have none.
func cover(section string, n int) string {
	if n%11 == 9 {
		return ""
	}
	switch section {
	case "cooking":
		return "rye-loaf"
	case "mending":
		return "thread-and-buttons"
	}
	views := []string{"ridges-at-dawn", "firs-in-the-mist", "harbor-in-the-evening", "hut-by-night", "autumn-valley", "map-of-the-walk"}
	return views[n/3%len(views)]
}

// publish gives an article its place in the magazine's life: most are out, the others are on their way in or gone.
func publish(s source, a *article, n int) {
	day := lastDay().AddDate(0, 0, -(articleCount-1-n)*4).Add(time.Duration(5+s.IntN(5)) * time.Hour)
	switch {
	case n%15 == 4:
		a.Status = "draft"
		a.Notes = []note{{By: "Greta", Text: "The ending is missing.", At: stamp(day)}}
	case n%30 == 11:
		a.Status = "review"
		a.Notes = []note{{By: "Ivo", Text: "Please check the distances.", At: stamp(day)}}
	case n%24 == 7:
		a.Status, a.PublishedAt, a.Views = "archived", stamp(day), s.IntN(4000)
		a.ImportedFrom = fmt.Sprintf("https://old.fieldnotes.example/?p=%d", 1000+n)
	case n%60 == 23: // scheduled
		a.Status, a.PublishedAt = "published", stamp(time.Date(2035, time.January, 1+n%28, 6, 0, 0, 0, time.UTC))
	case n%48 == 19: // its time is over
		a.Status, a.PublishedAt, a.UnpublishAt, a.Views = "published", stamp(day), stamp(day.AddDate(0, 0, 30)), s.IntN(900)
	case n%40 == 33: // taken offline by hand
		a.Status, a.PublishedAt, a.Active, a.Views = "published", stamp(day), false, s.IntN(900)
	default:
		a.Status, a.PublishedAt, a.Views = "published", stamp(day), 50+s.IntN(9000)
	}
}

// body writes three to five paragraphs without saying anything twice.
func body(s source, sec section, subject string) string {
	var paragraphs []string
	sentences := s.some(sec.sentences, len(sec.sentences))
	for len(sentences) > 0 {
		n := min(2+s.IntN(3), len(sentences))
		text := strings.ReplaceAll(strings.Join(sentences[:n], " "), "%s", subject)
		paragraphs, sentences = append(paragraphs, "<p>"+text+"</p>"), sentences[n:]
	}
	return strings.Join(paragraphs, "\n")
}

func pages() []any {
	text := func(lines ...string) block {
		return block{"text", map[string]any{"html": "<p>" + strings.Join(lines, "</p>\n<p>") + "</p>"}}
	}
	return []any{
		page{"about", "About", true, 10, []block{
			text("Field Notes is a small magazine about walking, cooking and mending things.", "Nobody here is an expert. That is the point."),
			{"quote", map[string]any{"text": "If it is worth doing, it is worth doing slowly.", "by": "a reader"}},
		}},
		page{"contact", "Contact", true, 20, []block{
			{"contact", map[string]any{"email": "hello@fieldnotes.example", "hours": map[string]any{"from": 9, "to": 16}}},
		}},
		page{"write-for-us", "Write for us", true, 30, []block{
			text("We like first attempts, honest failures and good bread."),
			{"list", map[string]any{"items": []string{"Up to 1,500 words", "Your own pictures", "No top tens"}, "ordered": false}},
		}},
		page{"imprint", "Imprint", true, 90, []block{text("Field Notes, 4 Mill Lane, Anytown.")}},
		page{"privacy", "Privacy", true, 95, []block{text("We keep what you send us, and nothing else.")}},
		page{"autumn-issue", "The autumn issue", false, 40, []block{text("Not ready yet.")}},
	}
}
