package budget_test

import (
	"context"
	"fmt"

	"trajgen/pipeline/episode"
	"trajgen/pipeline/model"
	"trajgen/pipeline/model/budget"
)

func Example() {
	ledger, err := budget.Open(budget.Config{USD: 0.01, Prices: episode.Prices{"m": {Input: 2, Output: 10}}})
	if err != nil {
		fmt.Println(err)
		return
	}
	worst := model.Bound{Model: "m", Prompt: 2000, Completion: 500} // 0.9 cents
	receipt, err := ledger.Reserve(context.Background(), worst)
	if err != nil {
		fmt.Println(err)
		return
	}
	receipt.Settle("m", episode.Usage{Prompt: 900, Completion: 100, Reported: true})
	fmt.Println(ledger.Spent().USD())

	_, err = ledger.Reserve(context.Background(), worst)
	fmt.Println(err)
	// Output:
	// 0.0028
	// budget reached: spent 0.0028 of 0.01 USD
}
