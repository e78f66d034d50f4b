package main

import (
	"fmt"
	"strings"
	"time"
)

const orderCount = 64

type category struct {
	Slug        string `json:"slug"`
	Name        string `json:"name"`
	Description string `json:"description,omitempty"`
	Parent      string `json:"parent,omitempty"`
	Position    int    `json:"position"`
}

type money struct {
	Amount   int    `json:"amount"`
	Currency string `json:"currency"`
}

type product struct {
	SKU           string         `json:"sku"`
	EAN           string         `json:"ean,omitempty"`
	Name          string         `json:"name"`
	Slug          string         `json:"slug"`
	Description   string         `json:"description"`
	Category      string         `json:"category"`
	Brand         string         `json:"brand"`
	Price         money          `json:"price"`
	Cost          money          `json:"cost"`
	Variants      []variant      `json:"variants"`
	Pictures      []string       `json:"pictures,omitempty"`
	Tags          []string       `json:"tags"`
	Attributes    map[string]any `json:"attributes"`
	WeightGrams   int            `json:"weightGrams"`
	Rating        rating         `json:"rating"`
	Active        bool           `json:"active"`
	AvailableFrom string         `json:"availableFrom,omitempty"`
	SupplierRef   string         `json:"supplierRef"`
}

type variant struct {
	SKU   string `json:"sku"`
	Size  string `json:"size,omitempty"`
	Color string `json:"color"`
	Stock int    `json:"stock"`
	Price *money `json:"price,omitempty"`
}

type rating struct {
	Average float64 `json:"average"`
	Count   int     `json:"count"`
}

type order struct {
	Number    string `json:"number"`
	Email     string `json:"email"`
	Lines     []line `json:"lines"`
	ShipTo    shipTo `json:"shipTo"`
	Note      string `json:"note,omitempty"`
	Status    string `json:"status"`
	Total     money  `json:"total"`
	PlacedAt  string `json:"placedAt"`
	ShippedAt string `json:"shippedAt,omitempty"`
}

type line struct {
	Product  string `json:"product"`
	Variant  string `json:"variant"`
	Quantity int    `json:"quantity"`
}

type shipTo struct {
	Name     string `json:"name"`
	Street   string `json:"street"`
	Postcode string `json:"postcode"`
	City     string `json:"city"`
	Country  string `json:"country"`
}

// kind is one lowest category with what is sold in it.
type kind struct {
	name, parent, root string
	prefix             string   // of article numbers
	models             []string // one product each for every brand drawn
	sizes              []string
	low, high          int // price in whole euros
	attributes         func(s source) map[string]any
	pictures           []string // of the media library
}

func kinds() []kind {
	clothing := []string{"XS", "S", "M", "L", "XL"}
	shoes := []string{"38", "40", "42", "44", "46"}
	fabric := func(s source) map[string]any {
		return map[string]any{"material": s.pick([]string{"wool", "cotton", "nylon", "hemp"}), "wash": s.pick([]string{"30°", "by hand", "40°"})}
	}
	volume := func(s source) map[string]any {
		return map[string]any{"liters": 5 * (1 + s.IntN(12)), "frame": s.chance(40)}
	}
	metal := func(s source) map[string]any {
		return map[string]any{"material": s.pick([]string{"steel", "titanium", "aluminum"}), "foldable": s.chance(50)}
	}
	return []kind{
		{"Jackets", "Clothing", "Wear", "JAC", []string{"Rain Shell", "Wind Jacket", "Wool Overshirt", "Down Vest"}, clothing, 60, 320, fabric, []string{"rain-shell", "size-chart"}},
		{"Trousers", "Clothing", "Wear", "TRO", []string{"Trail Trousers", "Canvas Trousers", "Rain Trousers"}, clothing, 45, 180, fabric, []string{"size-chart"}},
		{"Base layers", "Clothing", "Wear", "BAS", []string{"Merino Shirt", "Merino Leggings", "Wool Cap"}, clothing, 20, 110, fabric, nil},
		{"Boots", "Footwear", "Wear", "BOO", []string{"Ridge Boot", "Marsh Boot", "Forest Boot"}, shoes, 110, 340, fabric, []string{"ridge-boot"}},
		{"Socks", "Footwear", "Wear", "SOC", []string{"Hiking Sock", "Liner Sock"}, []string{"36-39", "40-43", "44-47"}, 8, 32, fabric, nil},
		{"Backpacks", "Packs", "Carry", "PAC", []string{"Day Pack", "Hut Pack", "Expedition Pack"}, []string{"short", "long"}, 55, 380, volume, []string{"day-pack"}},
		{"Pouches", "Packs", "Carry", "POU", []string{"Map Pouch", "Tool Roll", "Dry Bag"}, []string{""}, 9, 45, volume, nil},
		{"Tents", "Shelter", "Sleep out", "TEN", []string{"Solo Tent", "Duo Tent", "Tarp"}, []string{""}, 120, 690, volume, []string{"duo-tent"}},
		{"Sleeping bags", "Bedding", "Sleep out", "SLE", []string{"Summer Bag", "Three-Season Bag"}, []string{"170", "185", "200"}, 80, 420, fabric, nil},
		{"Stoves", "Kitchen", "Eat", "STO", []string{"Gas Stove", "Spirit Stove", "Wood Stove"}, []string{""}, 18, 160, metal, []string{"kettle"}},
		{"Pots", "Kitchen", "Eat", "POT", []string{"Cook Set", "Kettle", "Mug"}, []string{"small", "large"}, 12, 95, metal, []string{"kettle"}},
		{"Repair kits", "Tools", "Mend", "REP", []string{"Sewing Kit", "Tent Repair Kit", "Boot Wax", "Seam Sealer"}, []string{""}, 4, 39, metal, nil},
		{"Knives", "Tools", "Mend", "KNI", []string{"Pocket Knife", "Carving Knife", "Whetstone"}, []string{""}, 14, 120, metal, []string{"pocket-knife"}},
	}
}

// shop gives the files of the shop. The tree comes level by level, since a category's parent has to be there.
func shop(s source) map[string][]any {
	products, orders := catalog(s)
	out := map[string][]any{"04-products.ndjson": products, "05-orders.ndjson": orders}
	seen := map[string]bool{}
	add := func(file, name, parent string) {
		if seen[name] {
			return
		}
		seen[name] = true
		out[file] = append(out[file], category{Slug: slug(name), Name: name, Parent: slug(parent), Position: len(out[file])})
	}
	for _, k := range kinds() {
		add("01-categories.ndjson", k.root, "")
		add("02-categories.ndjson", k.parent, k.root)
		add("03-categories.ndjson", k.name, k.parent)
	}
	return out
}

func catalog(s source) (products, orders []any) {
	brands := []string{"Nordlys", "Kettle & Co", "Farrow", "Almhaus", "Tidewater", "Brackley"}
	var all []product
	for _, k := range kinds() {
		for _, model := range k.models {
			for _, brand := range s.some(brands, 3+s.IntN(3)) {
				all = append(all, newProduct(s, k, brand, model, len(all)))
			}
		}
	}
	for _, p := range all {
		products = append(products, p)
	}
	for n := range orderCount {
		orders = append(orders, newOrder(s, all, n))
	}
	return products, orders
}

func newProduct(s source, k kind, brand, model string, n int) product {
	colors := []string{"moss", "slate", "rust", "sand", "ink", "cranberry"}
	name := brand + " " + model
	euros := k.low + s.IntN(k.high-k.low)
	p := product{
		SKU: fmt.Sprintf("%s-%04d", k.prefix, 1000+n), Name: name, Slug: slug(name), Category: slug(k.name), Brand: brand,
		Description: fmt.Sprintf("%s by %s. Made to be repaired: every part can be bought by itself, and the seams are where you can reach them.", model, brand),
		Price:       money{euros*100 + 90, "EUR"}, Cost: money{euros * 55, "EUR"}, Pictures: k.pictures, Tags: s.some([]string{"repairable", "new", "sale", "gift", "vegan", "recycled"}, 1+s.IntN(2)),
		Attributes: k.attributes(s), WeightGrams: 40 + s.IntN(1900), Active: n%17 != 5,
		Rating:      rating{Average: float64(30+s.IntN(21)) / 10, Count: s.IntN(240)},
		SupplierRef: fmt.Sprintf("S%d/%05d", 1+s.IntN(4), s.IntN(100000)),
	}
	if s.chance(70) {
		p.EAN = fmt.Sprintf("%013d", 4_000_000_000_000+int64(n)*7919)
	}
	if n%29 == 8 { // announced
		p.AvailableFrom = stamp(time.Date(2035, time.March, 1, 0, 0, 0, 0, time.UTC))
	}
	for i, color := range s.some(colors, 1+s.IntN(3)) {
		for j, size := range k.sizes {
			v := variant{SKU: fmt.Sprintf("%s-%d%d", p.SKU, i+1, j+1), Size: size, Color: color, Stock: max(0, s.IntN(40)-6)}
			if size == "XL" || size == "200" || size == "large" {
				v.Price = &money{p.Price.Amount + 1000, "EUR"}
			}
			p.Variants = append(p.Variants, v)
		}
	}
	return p
}

func newOrder(s source, products []product, n int) order {
	name := s.pick(firstNames()) + " " + s.pick(lastNames())
	placed := lastDay().AddDate(0, 0, -(orderCount - 1 - n)).Add(time.Duration(s.IntN(86400)) * time.Second)
	cities := []string{"10115 Berlin DE", "1000 Ljubljana SI", "75011 Paris FR", "00184 Roma IT", "1050 Wien AT", "2100 København DK"}
	at := strings.Fields(s.pick(cities))
	o := order{
		Number: fmt.Sprintf("O-2026-%05d", n+1), Email: slug(name) + "@mail.example", PlacedAt: stamp(placed), Total: money{0, "EUR"},
		ShipTo: shipTo{name, fmt.Sprintf("%s %d", s.pick([]string{"Mill Lane", "Am Markt", "Via Appia", "Rue Verte"}), 1+s.IntN(120)), at[0], at[1], at[2]},
	}
	for range 1 + s.IntN(4) {
		p := products[s.IntN(len(products))]
		l := line{Product: p.Slug, Variant: p.Variants[s.IntN(len(p.Variants))].SKU, Quantity: 1 + s.IntN(3)}
		o.Lines = append(o.Lines, l)
		o.Total.Amount += p.Price.Amount * l.Quantity
	}
	if s.chance(20) {
		o.Note = s.pick([]string{"Please leave it with the neighbor.", "A gift: no invoice in the parcel, please.", "Ring twice."})
	}
	switch age := orderCount - 1 - n; {
	case n%13 == 6:
		o.Status = "canceled"
	case age > 14:
		o.Status, o.ShippedAt = "delivered", stamp(placed.AddDate(0, 0, 2))
	case age > 7:
		o.Status, o.ShippedAt = "shipped", stamp(placed.AddDate(0, 0, 2))
	case age > 2:
		o.Status = "paid"
	default:
		o.Status = "new"
	}
	return o
}
