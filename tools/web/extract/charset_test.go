package extract_test

import (
	"strings"
	"testing"
	"unicode/utf8"

	"golang.org/x/net/html/charset"
)

// The samples are texts of the length of a short paragraph, in what pages without a declaration are found in.
const (
	russian = "Вчера утром в порту открылась новая библиотека. В ней больше ста тысяч книг, большой читальный зал и " +
		"комната для детей. Директор сказала, что вход свободный."
	ukrainian = "Учора вранці в порту відкрилася нова бібліотека. У ній понад сто тисяч книжок, великий читальний зал і " +
		"кімната для дітей. Її директорка сказала, що вхід вільний."
	japanese  = "昨日の朝、港に新しい図書館が開館しました。十万冊以上の本と、広い閲覧室、子どものための部屋があります。館長は入館は無料だと話しています。"
	chinese   = "昨天上午，港口的新图书馆正式开放。馆内藏书超过十万册，设有宽敞的阅览室和儿童活动室。馆长表示，所有市民都可以免费入馆。"
	taiwanese = "昨天上午，港口的新圖書館正式開放。館內藏書超過十萬冊，設有寬敞的閱覽室和兒童活動室。館長表示，所有市民都可以免費入館。"
	korean    = "어제 아침 항구에 새 도서관이 문을 열었습니다. 십만 권이 넘는 책과 넓은 열람실, 어린이를 위한 방이 있습니다. 관장은 입장이 무료라고 말했습니다."
	polish    = "Wczoraj rano w porcie otwarto nową bibliotekę. Jest w niej ponad sto tysięcy książek, duża czytelnia i " +
		"pokój dla dzieci. Dyrektorka powiedziała, że wstęp jest wolny, także w środę."
	czech = "Včera ráno byla v přístavu otevřena nová knihovna. Je v ní více než sto tisíc knih, velká čítárna a " +
		"místnost pro děti. Ředitelka řekla, že vstup je volný."
	hungarian = "Tegnap reggel új könyvtár nyílt a kikötőben. Több mint százezer könyv, nagy olvasóterem és gyermekszoba " +
		"várja az olvasókat. Az igazgatónő szerint a belépés díjtalan."
	greek = "Χθες το πρωί άνοιξε στο λιμάνι η νέα βιβλιοθήκη. Έχει πάνω από εκατό χιλιάδες βιβλία, μεγάλο " +
		"αναγνωστήριο και δωμάτιο για παιδιά. Η είσοδος είναι ελεύθερη."
	hebrew = "אתמול בבוקר נפתחה בנמל ספרייה חדשה. יש בה יותר ממאה אלף ספרים, אולם קריאה גדול וחדר לילדים. המנהלת אמרה " +
		"שהכניסה חופשית לכולם."
	arabic = "افتتحت صباح أمس مكتبة جديدة في الميناء. وفيها أكثر من مئة ألف كتاب وقاعة كبيرة للقراءة وغرفة للأطفال. " +
		"وقالت المديرة إن الدخول مجاني."
	turkish = "Dün sabah limanda yeni bir kütüphane açıldı. İçinde yüz binden fazla kitap, geniş bir okuma salonu ve " +
		"çocuklar için bir oda var. Müdür girişin ücretsiz olduğunu söyledi."
	german = "Gestern früh öffnete am Hafen eine neue Bücherei. Sie hat über hunderttausend Bücher, einen großen " +
		"Lesesaal und ein Zimmer für Kinder. Für Schüler gebührenfrei."
	french = "Hier matin, une nouvelle bibliothèque a ouvert près du port. Elle possède plus de cent mille livres, une " +
		"grande salle de lecture et une pièce réservée aux élèves."
)

// encoded returns a text in a charset.
func encoded(t *testing.T, name, text string) string {
	t.Helper()
	e, _ := charset.Lookup(name)
	if e == nil {
		t.Fatalf("charset %q", name)
	}
	out, err := e.NewEncoder().String(text)
	if err != nil || strings.Contains(out, "&#") {
		t.Fatalf("%s cannot say %s: %v", name, text, err)
	}
	return out
}

// around puts a text into a page whose markup and scripts are longer than it, as they are.
func around(text string) string {
	return "<!DOCTYPE html><html><head><style>.menu { color: red; margin: 0 auto }</style><script>" +
		strings.Repeat("function track(event) { return window.analytics.push(event); }\n", 50) +
		"</script></head><body class=\"page\"><div id=\"menu\"><a href=\"/index.html\">Home</a></div><p class=\"text\">" +
		text + "</p></body></html>"
}

func TestUndeclaredCharsets(t *testing.T) {
	tests := []struct{ charset, text string }{
		{"utf-8", russian}, {"utf-8", japanese}, {"windows-1251", russian}, {"windows-1251", ukrainian}, {"koi8-r", russian},
		{"iso-8859-5", russian},
		{"shift_jis", japanese}, {"euc-jp", japanese}, {"gb18030", chinese}, {"gbk", chinese}, {"big5", taiwanese}, {"euc-kr",
			korean},
		{"iso-8859-2", polish}, {"windows-1250", polish}, {"iso-8859-2", czech}, {"iso-8859-2", hungarian}, {"iso-8859-7",
			greek}, {"windows-1253", greek},
		{"windows-1255", hebrew}, {"windows-1256", arabic}, {"iso-8859-6", arabic}, {"iso-8859-9", turkish}, {"windows-1252",
			german}, {"windows-1252", french},
		{"utf-16le", german}, {"utf-16be", russian}, {"utf-16le", japanese},
	}
	for _, tt := range tests {
		t.Run(tt.charset, func(t *testing.T) {
			page := around(tt.text)
			if got := read(t, "https://a.example/", "text/html", encoded(t, tt.charset, page)); !strings.Contains(got.Text,
				tt.text) {
				t.Errorf("in a page: got %q", got.Text)
			}
			if !strings.HasPrefix(tt.charset, "utf-16") { // without markup there is no ASCII to tell it by
				if got := read(t, "https://a.example/", "text/plain", encoded(t, tt.charset, tt.text)); got.Text != tt.text {
					t.Errorf("alone: got %q", got.Text)
				}
			}
		})
	}
}

func TestDeclaredCharsets(t *testing.T) {
	in1251 := encoded(t, "windows-1251", "мир")
	tests := []struct{ name, contentType, body, want string }{
		{"header", "text/html; charset=windows-1251", "<p>" + in1251, "мир"},
		{"header with quotes", `text/plain; charset="Windows-1251"`, in1251, "мир"},
		{"header before meta", "text/html; charset=windows-1251", "<meta charset=utf-8><p>" + in1251, "мир"},
		{"mark before header", "text/html; charset=windows-1251", "\xef\xbb\xbf<p>мир", "мир"},
		{"mark of UTF-16", "text/html; charset=utf-8", "\xfe\xff" + encoded(t, "utf-16be", "<p>мир"), "мир"},
		{"UTF-16 in the header alone", "text/plain; charset=utf-16le", encoded(t, "utf-16le", "中文"), "中文"},
		{"meta", "text/html", "<meta charset=windows-1251><p>" + in1251, "мир"},
		{"meta of old", "text/html", "<META HTTP-EQUIV=Content-Type CONTENT='text/html; CHARSET=windows-1251'><p>" + in1251,
			"мир"},
		{"meta far away", "text/html", "<!--" + strings.Repeat("x", 4000) + "--><meta charset='windows-1251'><p>" + in1251,
			"мир"},
		{"meta that says UTF-16 in ASCII", "text/html", "<meta charset=utf-16><p>мир", "мир"},
		{"XML", "application/rss+xml", `<?xml version="1.0" encoding="windows-1251"?><rss><channel><item><title>` + in1251 +
			"</title></item></channel></rss>", "## мир"},
		{"text that speaks of meta", "text/plain", "<meta charset=windows-1251> мир", "<meta charset=windows-1251> мир"},
		{"unknown", "text/html; charset=klingon", "<p>мир", "мир"},
		{"unknown in meta", "text/html", "<meta charset=none><p>мир", "мир"},
		{"not to be decoded, as browsers say", "text/html; charset=iso-2022-kr", "<p>мир", "мир"},
		{"a header that cannot be read", "text/html; ; charset", "<p>мир", "мир"},
		{"one broken byte", "text/html", "<p>мир и " + strings.Repeat("мир ", 20) + "\xd0", "мир и " + strings.Repeat("мир ",
			20) + "\uFFFD"},
		{"broken bytes", "text/html; charset=utf-8", "<p>a\xff\xfe\x80b", "a\uFFFDb"},
		{"broken Shift_JIS", "text/html; charset=shift_jis", "<p>a\x82", "a\uFFFD"},
		{"half a character of UTF-16", "text/plain; charset=utf-16le", "a\x00b\x00c", "ab\uFFFD"},
		{"zero", "text/html", "<p>some words\x00and more of them", "some words"},
		{"mark alone", "text/plain", "\xef\xbb\xbfmir", "mir"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			got := read(t, "https://a.example/", tt.contentType, tt.body)
			if text := strings.TrimSpace(got.Text); !strings.HasPrefix(text, strings.TrimSpace(tt.want)) ||
				!utf8.ValidString(text) {
				t.Errorf("got %q, want %q", text, tt.want)
			}
		})
	}
}
