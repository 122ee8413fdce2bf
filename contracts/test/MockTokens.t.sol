// SPDX-License-Identifier: MIT
pragma solidity 0.8.37;

import {MockERC20} from "../mocks/MockERC20.sol";
import {MockFeeToken} from "../mocks/MockFeeToken.sol";
import {MockMulticall3} from "../mocks/MockMulticall3.sol";
import {MockPermitToken} from "../mocks/MockPermitToken.sol";
import {MockUSDT} from "../mocks/MockUSDT.sol";
import {Test} from "./utils/Test.sol";

/// @title The tokens besides USDC that tests pay with, and what reads many things at once
contract MockTokensTest is Test {
    address private constant ALICE = address(uint160(uint256(keccak256("alice"))));
    address private constant BOB = address(uint160(uint256(keccak256("bob"))));

    function test_anyoneMintsEachOfThem() public {
        MockERC20[3] memory tokens = [
            MockERC20(deployCode("MockERC20", abi.encode("Plain", "PLN", uint8(6)))),
            MockERC20(deployCode("MockPermitToken", abi.encode("Permits", "PMT", uint8(18)))),
            MockERC20(deployCode("MockFeeToken", abi.encode("Fees", "FEE", uint8(0))))
        ];
        uint8[3] memory decimals = [6, 18, 0];
        for (uint256 i = 0; i < tokens.length; ++i) {
            tokens[i].mint(ALICE, 1_000);
            assertEq(tokens[i].balanceOf(ALICE), 1_000, "balance");
            assertEq(tokens[i].decimals(), decimals[i], "decimals");
        }
    }

    function test_theFeeTokenKeepsAHundredth() public {
        MockFeeToken token = MockFeeToken(deployCode("MockFeeToken", abi.encode("Fees", "FEE", uint8(6))));
        token.mint(ALICE, 1_000);
        vm.prank(ALICE);
        token.transfer(BOB, 999);
        assertEq(token.balanceOf(ALICE), 1, "alice");
        assertEq(token.balanceOf(BOB), 990, "bob");
        assertEq(token.balanceOf(address(token)), 9, "fee");
        assertEq(token.totalSupply(), 1_000, "supply");
    }

    function test_usdtReturnsNothing() public {
        MockUSDT token = usdt();
        (bool success, bytes memory result) = callAs(ALICE, token, abi.encodeCall(token.transfer, (BOB, 10)));
        assertTrue(success && result.length == 0, "transfer");
        (success, result) = callAs(ALICE, token, abi.encodeCall(token.approve, (BOB, 10)));
        assertTrue(success && result.length == 0, "approve");
        (success, result) = callAs(BOB, token, abi.encodeCall(token.transferFrom, (ALICE, BOB, 10)));
        assertTrue(success && result.length == 0, "transferFrom");
        assertEq(token.balanceOf(BOB), 20, "bob");
        assertEq(token.allowance(ALICE, BOB), 0, "allowance");
    }

    function test_usdtRefusesWithoutAReason() public {
        MockUSDT token = usdt();
        refuses(ALICE, token, abi.encodeCall(token.transfer, (BOB, 1_001)));
        refuses(BOB, token, abi.encodeCall(token.transferFrom, (ALICE, BOB, 1)));
    }

    function test_anApprovalOfUsdtMustBeTakenBackBeforeAnother() public {
        MockUSDT token = usdt();
        vm.prank(ALICE);
        token.approve(BOB, 10);
        refuses(ALICE, token, abi.encodeCall(token.approve, (BOB, 20)));
        vm.prank(ALICE);
        token.approve(BOB, 0);
        vm.prank(ALICE);
        token.approve(BOB, type(uint256).max);
        vm.prank(BOB);
        token.transferFrom(ALICE, BOB, 10);
        assertEq(token.allowance(ALICE, BOB), type(uint256).max, "an allowance without end stays");
    }

    function test_multicallTellsWhichCallFailed() public {
        MockMulticall3 multicall = MockMulticall3(deployCode("MockMulticall3", ""));
        MockUSDT token = usdt();
        bytes memory good = abi.encodeCall(token.balanceOf, (ALICE));
        bytes memory bad = abi.encodeCall(token.transfer, (BOB, 1));

        MockMulticall3.Call3[] memory calls3 = new MockMulticall3.Call3[](2);
        calls3[0] = MockMulticall3.Call3(address(token), false, good);
        calls3[1] = MockMulticall3.Call3(address(token), true, bad);
        assertResults(multicall.aggregate3(calls3));
        calls3[1].allowFailure = false;
        vm.expectRevert(errorData("Multicall3: call failed"));
        multicall.aggregate3(calls3);

        MockMulticall3.Call[] memory calls = new MockMulticall3.Call[](2);
        calls[0] = MockMulticall3.Call(address(token), good);
        calls[1] = MockMulticall3.Call(address(token), bad);
        assertResults(multicall.tryAggregate(false, calls));
        vm.expectRevert(errorData("Multicall3: call failed"));
        multicall.tryAggregate(true, calls);
    }

    function test_multicallReadsTheChain() public {
        MockMulticall3 multicall = MockMulticall3(deployCode("MockMulticall3", ""));
        vm.warp(1_800_000_000);
        assertEq(multicall.getCurrentBlockTimestamp(), 1_800_000_000, "timestamp");
        assertEq(multicall.getEthBalance(address(this)), address(this).balance, "ether");
    }

    function usdt() private returns (MockUSDT token) {
        token = MockUSDT(deployCode("MockUSDT", abi.encode("Tether USD", "USDT", uint8(6))));
        token.mint(ALICE, 1_000);
        assertEq(token.totalSupply(), 1_000, "supply");
    }

    function refuses(address account, MockUSDT token, bytes memory data) private {
        (bool success, bytes memory result) = callAs(account, token, data);
        assertTrue(!success && result.length == 0, "refused without a reason");
    }

    function callAs(address account, MockUSDT token, bytes memory data)
        private
        returns (bool success, bytes memory result)
    {
        vm.prank(account);
        (success, result) = address(token).call(data);
    }

    function assertResults(MockMulticall3.Result[] memory results) private pure {
        assertEq(results.length, 2, "results");
        assertTrue(results[0].success && !results[1].success, "success");
        assertEq(results[0].returnData, abi.encode(1_000), "return data");
        assertEq(results[1].returnData, "", "revert data");
    }
}
