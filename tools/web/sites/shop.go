package sites

import (
	"cmp"
	"fmt"
	"net/http"
	"regexp"
	"slices"
	"strconv"
	"strings"
)

// shop sells things for the house. It has one cart, which outlasts a login.
type shop struct {
	base
	Products []product `json:"products"`
	Cart     []line    `json:"cart"`
	Coupon   string    `json:"coupon"`
	Orders   []*order  `json:"orders"`
	Reviews  []review  `json:"reviews"` // that visitors wrote
	byID     map[int]*product
}

type product struct {
	ID       int     `json:"id"`
	Name     string  `json:"name"`
	Category string  `json:"category"`
	Price    int     `json:"price"` // in cents
	Rating   float64 `json:"rating"`
	Stock    int     `json:"stock"`
	Text     string  `json:"-"`
}

// line is a line of a cart or an order.
type line struct {
	ID       int    `json:"id"`
	Name     string `json:"name"`
	Quantity int    `json:"quantity"`
	Price    int    `json:"price"` // of one
}

type order struct {
	Number   int               `json:"number"`
	User     string            `json:"user"`
	Lines    []line            `json:"lines"`
	Coupon   string            `json:"coupon"`
	Shipping string            `json:"shipping"`
	Payment  string            `json:"payment"`
	Total    int               `json:"total"`
	Status   string            `json:"status"` // placed, cancelled
	Address  map[string]string `json:"address"`
	Gift     bool              `json:"gift"`
}

type review struct {
	ID    int    `json:"id"`
	User  string `json:"user"`
	Stars int    `json:"stars"`
	Text  string `json:"text"`
}

var shopKinds = []struct {
	category string
	names    []string
	from, to int // euros
}{
	{"Kitchen", []string{"Kettle", "Saucepan", "Bread Knife", "Teapot", "Cutting Board", "Pepper Mill"}, 12, 90},
	{"Garden", []string{"Watering Can", "Spade", "Bird House", "Plant Pot", "Pruning Shears", "Hose Reel"}, 8, 70},
	{"Office", []string{"Desk Lamp", "Fountain Pen", "Notebook", "Letter Tray", "Stapler", "Wall Clock"}, 3, 120},
	{"Outdoor", []string{"Tent", "Sleeping Bag", "Headlamp", "Water Bottle", "Rucksack", "Camping Stove"}, 15, 240},
}

var shopMakes = []string{"Alder", "Brook", "Corvin", "Dunmore", "Elster", "Fjord"}

var shipping = []struct {
	Name, Label string
	Cost        int
}{{"standard", "Standard, 3 to 5 days", 490}, {"express", "Express, next day", 1290}, {"pickup", "Pick up in the shop", 0}}

func openShop(seed uint64) world {
	s := &shop{base: newBase("shop", seed), Cart: []line{}, Orders: []*order{}, Reviews: []review{}, byID: map[int]*product{}}
	s.users = map[string]string{"ada": "lovelace", "grace": "hopper"}
	for _, kind := range shopKinds {
		for _, name := range kind.names {
			s.Products = append(s.Products, product{
				ID: 100 + len(s.Products), Name: pick(&s.base, shopMakes) + " " + name, Category: kind.category,
				Price:  (kind.from+s.rand.IntN(kind.to-kind.from))*100 + pick(&s.base, []int{0, 49, 90, 99}),
				Rating: float64(25+s.rand.IntN(26)) / 10, Stock: max(0, s.rand.IntN(14)-2),
			})
		}
	}
	for i := range s.Products {
		p := &s.Products[i]
		p.Text = fmt.Sprintf("The %s weighs %d g and comes with a guarantee of %d years.", p.Name, 80+s.rand.IntN(1900),
			1+s.rand.IntN(5))
		s.byID[p.ID] = p
	}
	s.HandleFunc("GET /{$}", func(w http.ResponseWriter, r *http.Request) {
		s.show(w, r, 200, "home", "Things for the house", s.Products)
	})
	s.HandleFunc("GET /search", s.search)
	s.HandleFunc("GET /product/{id}", s.product)
	s.HandleFunc("POST /product/{id}/review", s.review)
	s.HandleFunc("GET /cart", func(w http.ResponseWriter, r *http.Request) { s.cart(w, r, "") })
	s.HandleFunc("POST /cart", s.change)
	s.HandleFunc("POST /coupon", s.redeem)
	s.HandleFunc("GET /checkout", s.checkout)
	s.HandleFunc("POST /checkout", s.buy)
	s.HandleFunc("GET /orders", s.orders)
	s.HandleFunc("GET /orders/{number}", s.orders)
	s.HandleFunc("POST /orders/{number}/cancel", s.cancel)
	s.serve()
	return s
}

func (s *shop) state() any { return s }

func (s *shop) search(w http.ResponseWriter, r *http.Request) {
	q, category := strings.ToLower(strings.TrimSpace(r.FormValue("q"))), r.FormValue("category")
	most, _ := strconv.Atoi(r.FormValue("max"))
	var found []product
	for _, p := range s.Products {
		if strings.Contains(strings.ToLower(p.Name), q) && (category == "" || p.Category == category) &&
			(most == 0 || p.Price <= most*100) && (r.FormValue("stock") == "" || p.Stock > 0) {
			found = append(found, p)
		}
	}
	switch r.FormValue("sort") {
	case "cheap":
		slices.SortStableFunc(found, func(a, b product) int { return cmp.Compare(a.Price, b.Price) })
	case "dear":
		slices.SortStableFunc(found, func(a, b product) int { return cmp.Compare(b.Price, a.Price) })
	case "rating":
		slices.SortStableFunc(found, func(a, b product) int { return cmp.Compare(b.Rating, a.Rating) })
	}
	s.show(w, r, 200, "search", fmt.Sprintf("%d products", len(found)), found)
}

// named is the product of a path; nil after it answered that there is none.
func (s *shop) named(w http.ResponseWriter, r *http.Request) *product {
	id, _ := strconv.Atoi(r.PathValue("id"))
	p := s.byID[id]
	if p == nil {
		s.show(w, r, http.StatusNotFound, "missing", "Page not found", r.URL.Path)
	}
	return p
}

func (s *shop) product(w http.ResponseWriter, r *http.Request) {
	if p := s.named(w, r); p != nil {
		var about []review
		for _, one := range s.Reviews {
			if one.ID == p.ID {
				about = append(about, one)
			}
		}
		s.show(w, r, 200, "product", p.Name, map[string]any{"Product": p, "Reviews": about})
	}
}

func (s *shop) review(w http.ResponseWriter, r *http.Request) {
	user, ok := s.member(w, r)
	if !ok {
		return
	}
	stars, _ := strconv.Atoi(r.FormValue("stars"))
	if p := s.named(w, r); p != nil && stars >= 1 && stars <= 5 && len(s.Reviews) < 100 {
		s.Reviews = append(s.Reviews, review{p.ID, user, stars, clip(r.FormValue("text"), 1000)})
		http.Redirect(w, r, fmt.Sprintf("/product/%d", p.ID), http.StatusSeeOther)
	}
}

func (s *shop) cart(w http.ResponseWriter, r *http.Request, problem string) {
	s.show(w, r, 200, "cart", "Your cart", map[string]any{"Shop": s, "Sum": s.sum(), "Problem": problem})
}

// sum is what is in the cart, in cents, less the coupon.
func (s *shop) sum() (cents int) {
	for _, l := range s.Cart {
		cents += l.Quantity * l.Price
	}
	if s.Coupon != "" {
		cents -= cents / 10
	}
	return cents
}

// change puts a number of a product into the cart: more of it with add, so many with set, none with remove.
func (s *shop) change(w http.ResponseWriter, r *http.Request) {
	id, _ := strconv.Atoi(r.FormValue("id"))
	n, err := strconv.Atoi(r.FormValue("quantity"))
	p := s.byID[id]
	at := slices.IndexFunc(s.Cart, func(l line) bool { return l.ID == id })
	if do := r.FormValue("do"); do == "remove" {
		n, err = 0, nil
	} else if at >= 0 && do == "add" {
		n += s.Cart[at].Quantity
	}
	switch {
	case p == nil || err != nil || n < 0:
		s.cart(w, r, "That is not a quantity.")
		return
	case n > p.Stock:
		s.cart(w, r, fmt.Sprintf("There are only %d of %s in stock.", p.Stock, p.Name))
		return
	case n == 0 && at >= 0:
		s.Cart = slices.Delete(s.Cart, at, at+1)
	case at >= 0:
		s.Cart[at].Quantity = n
	case n > 0:
		s.Cart = append(s.Cart, line{p.ID, p.Name, n, p.Price})
	}
	http.Redirect(w, r, "/cart", http.StatusSeeOther)
}

func (s *shop) redeem(w http.ResponseWriter, r *http.Request) {
	code := strings.ToUpper(strings.TrimSpace(r.FormValue("code")))
	if code != "SPRING10" {
		s.cart(w, r, "This coupon is not valid.")
		return
	}
	s.Coupon = code
	http.Redirect(w, r, "/cart", http.StatusSeeOther)
}

func (s *shop) checkout(w http.ResponseWriter, r *http.Request) {
	if _, ok := s.member(w, r); ok {
		s.show(w, r, 200, "checkout", "Checkout", map[string]any{"Shop": s, "Sum": s.sum(), "Shipping": shipping})
	}
}

var postcode = regexp.MustCompile(`^\d{5}$`)

func (s *shop) buy(w http.ResponseWriter, r *http.Request) {
	user, ok := s.member(w, r)
	if !ok {
		return
	}
	o := &order{Number: 5001 + len(s.Orders), User: user, Lines: s.Cart, Coupon: s.Coupon, Total: s.sum(), Status: "placed",
		Gift: r.FormValue("gift") != ""}
	o.Address = map[string]string{}
	wrong := map[string]string{}
	for _, field := range []string{"name", "street", "postcode", "city"} {
		if o.Address[field] = clip(strings.TrimSpace(r.FormValue(field)), 200); o.Address[field] == "" {
			wrong[field] = "Please fill this in."
		}
	}
	if !postcode.MatchString(o.Address["postcode"]) {
		wrong["postcode"] = "A postcode has five digits."
	}
	for _, way := range shipping {
		if way.Name == r.FormValue("shipping") {
			o.Shipping, o.Total = way.Name, o.Total+way.Cost
		}
	}
	if o.Shipping == "" {
		wrong["shipping"] = "Please choose how we send it."
	}
	if o.Payment = r.FormValue("payment"); o.Payment != "invoice" && o.Payment != "transfer" {
		wrong["payment"] = "Please choose how you pay."
	}
	if len(wrong) > 0 || len(s.Cart) == 0 || len(s.Orders) >= 50 {
		s.show(w, r, http.StatusUnprocessableEntity, "checkout", "Checkout",
			map[string]any{"Shop": s, "Sum": s.sum(), "Shipping": shipping, "Wrong": wrong, "Order": o})
		return
	}
	for _, l := range s.Cart {
		s.byID[l.ID].Stock -= l.Quantity
	}
	s.Orders, s.Cart, s.Coupon = append(s.Orders, o), []line{}, ""
	http.Redirect(w, r, fmt.Sprintf("/orders/%d", o.Number), http.StatusSeeOther)
}

// orders shows all orders of a user, or one.
func (s *shop) orders(w http.ResponseWriter, r *http.Request) {
	user, ok := s.member(w, r)
	if !ok {
		return
	}
	number := r.PathValue("number")
	var own []*order
	for _, o := range s.Orders {
		if o.User == user && (number == "" || strconv.Itoa(o.Number) == number) {
			own = append(own, o)
		}
	}
	title := "Your orders"
	if number != "" {
		title = "Order " + clip(number, 20)
	}
	s.show(w, r, 200, "orders", title, own)
}

func (s *shop) cancel(w http.ResponseWriter, r *http.Request) {
	user, ok := s.member(w, r)
	if !ok {
		return
	}
	for _, o := range s.Orders {
		if o.User == user && strconv.Itoa(o.Number) == r.PathValue("number") && o.Status == "placed" {
			o.Status = "cancelled"
			for _, l := range o.Lines {
				s.byID[l.ID].Stock += l.Quantity
			}
		}
	}
	http.Redirect(w, r, "/orders", http.StatusSeeOther)
}
