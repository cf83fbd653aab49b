package scripted

import (
	"encoding/binary"
	"encoding/json"
	"math"

	"trajgen/pipeline/episode"
)

// pack writes a script into one text, a quarter of what it takes as a structure: lengths before texts, counts before
// lists. Id and system message are kept beside it. unpack gives it back, its texts as parts of the packed one.
func (sc *script) pack() string {
	var p packer
	p.text(sc.first)
	p.number(uint64(max(0, sc.turns)))
	p.texts(sc.said)
	p.texts(sc.exact)
	p.texts(sc.regexes)
	p.number(uint64(len(sc.numbers)))
	for _, n := range sc.numbers {
		p.number(math.Float64bits(n.want))
		p.number(math.Float64bits(n.tolerance))
	}
	workspaced := uint64(0)
	if sc.workspaced {
		workspaced = 1
	}
	p.number(workspaced)
	p.number(uint64(len(sc.gold)))
	for _, step := range sc.gold {
		p.text(step.Content)
		p.text(step.Reasoning)
		p.number(uint64(len(step.Calls)))
		for _, c := range step.Calls {
			p.text(c.Name)
			p.text(string(c.Arguments))
		}
	}
	return string(p)
}

func unpack(packed string) *script {
	u := unpacker(packed)
	sc := &script{first: u.text(), turns: int(u.number()), said: u.texts(), exact: u.texts(), regexes: u.texts()}
	sc.numbers = make([]number, u.number())
	for i := range sc.numbers {
		sc.numbers[i] = number{math.Float64frombits(u.number()), math.Float64frombits(u.number())}
	}
	sc.workspaced = u.number() == 1
	sc.gold = make([]episode.Step, u.number())
	for i := range sc.gold {
		step := &sc.gold[i]
		step.Content, step.Reasoning = u.text(), u.text()
		step.Calls = make([]episode.GoldCall, u.number())
		for j := range step.Calls {
			step.Calls[j].Name = u.text()
			step.Calls[j].Arguments = json.RawMessage(u.text())
		}
	}
	return sc
}

type packer []byte

func (p *packer) number(n uint64) { *p = binary.AppendUvarint(*p, n) }

func (p *packer) text(s string) {
	p.number(uint64(len(s)))
	*p = append(*p, s...)
}

func (p *packer) texts(list []string) {
	p.number(uint64(len(list)))
	for _, s := range list {
		p.text(s)
	}
}

// unpacker reads what a packer wrote, and nothing else.
type unpacker string

func (u *unpacker) number() uint64 {
	var n uint64
	for i, shift := 0, 0; ; i, shift = i+1, shift+7 {
		b := (*u)[i]
		n |= uint64(b&0x7f) << shift
		if b < 0x80 {
			*u = (*u)[i+1:]
			return n
		}
	}
}

func (u *unpacker) text() string {
	n := u.number()
	s := string((*u)[:n])
	*u = (*u)[n:]
	return s
}

func (u *unpacker) texts() []string {
	list := make([]string, u.number())
	for i := range list {
		list[i] = u.text()
	}
	return list
}
