// Package literals finds texts without which a regular expression does not match.
package literals

import "regexp/syntax"

// Required returns texts of which every match of an expression has at least one, of the rarest part of it that has such texts; nil
// when none are known, or when they are more than most. A literal of the expression is what text makes of it, and the size of that;
// size 0 is of no use.
func Required[T any](tree *syntax.Regexp, most int, text func(*syntax.Regexp) (T, int)) []T {
	return required(tree, most, text).texts
}

// found is texts, and the size of the shortest.
type found[T any] struct {
	texts []T
	least int
}

func required[T any](tree *syntax.Regexp, most int, text func(*syntax.Regexp) (T, int)) (best found[T]) {
	switch tree.Op {
	case syntax.OpLiteral:
		if one, size := text(tree); size > 0 {
			return found[T]{[]T{one}, size}
		}
	case syntax.OpCapture, syntax.OpPlus:
		return required(tree.Sub[0], most, text)
	case syntax.OpRepeat:
		if tree.Min > 0 {
			return required(tree.Sub[0], most, text)
		}
	case syntax.OpConcat: // any part will do: the one whose texts are the longest is the rarest
		for _, sub := range tree.Sub {
			if of := required(sub, most, text); of.least > best.least {
				best = of
			}
		}
	case syntax.OpAlternate:
		for i, sub := range tree.Sub {
			of := required(sub, most, text)
			if of.least == 0 || len(best.texts)+len(of.texts) > most {
				return found[T]{}
			}
			best.texts = append(best.texts, of.texts...)
			if i == 0 || of.least < best.least {
				best.least = of.least
			}
		}
	}
	return best
}
