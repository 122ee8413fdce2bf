// SPDX-License-Identifier: MIT
pragma solidity 0.8.37;

import {IX402Facilitator} from "../interfaces/IX402Facilitator.sol";
import {MockUSDC} from "../mocks/MockUSDC.sol";
import {MockUSDCProxy} from "../mocks/MockUSDCProxy.sol";
import {FacilitatorTest} from "./utils/FacilitatorTest.sol";

/**
 * @title Gas of a payment, against a direct transferWithAuthorization of the same token
 * @dev The token stands behind a proxy and costs what USDC costs. Isolated: each call is a transaction of its own,
 * with the 21,000, its calldata, cold accounts and slots, and the refund. As in the field, payers keep a balance,
 * recipients have one, and the facilitator has none.
 */
/// forge-config: default.isolate = true
contract GasPerPaymentTest is FacilitatorTest {
    uint256 private constant VALUE = 10_000;

    function setUp() public override {
        super.setUp();
        usdc.mint(RECIPIENT, 1);
    }

    function test_settle() public {
        uint256 direct = measureDirect();
        settle(pay(PAYER_KEY, VALUE, keccak256("settle")), RECIPIENT);
        check("settle", vm.lastCallGas().gasTotalUsed, direct, 125);
    }

    /// @dev Whose balance is zero before: 17,100 more, which a direct transfer takes as well.
    function test_settle_newRecipient() public {
        settle(pay(PAYER_KEY, VALUE, keccak256("settle")), STRANGER);
        vm.snapshotValue("gas", "settle, new recipient", vm.lastCallGas().gasTotalUsed);
    }

    /// @dev The first of its token, which stores the default limit.
    function test_forwardReceived() public {
        IX402Facilitator.Payment memory payment = pay(PAYER_KEY, VALUE, keccak256("submitted"));
        submitDirectly(payment);
        vm.prank(RECOVERER);
        facilitator.forwardReceived(address(usdc), payment.authorization, payment.signature, STRANGER);
        vm.snapshotValue("gas", "forwardReceived, new recipient", vm.lastCallGas().gasTotalUsed);
    }

    function test_settleBatch_5_oneRecipient() public {
        measureBatch("settleBatch, 5 payments, one recipient, per payment", 5, 1, 74);
    }

    function test_settleBatch_5_distinctRecipients() public {
        measureBatch("settleBatch, 5 payments, distinct recipients, per payment", 5, 5, 86);
    }

    function test_settleBatch_25_oneRecipient() public {
        measureBatch("settleBatch, 25 payments, one recipient, per payment", 25, 1, 62);
    }

    function test_settleBatch_25_distinctRecipients() public {
        measureBatch("settleBatch, 25 payments, distinct recipients, per payment", 25, 25, 77);
    }

    function test_settleBatch_100_oneRecipient() public {
        measureBatch("settleBatch, 100 payments, one recipient, per payment", 100, 1, 60);
    }

    function test_settleBatch_100_distinctRecipients() public {
        measureBatch("settleBatch, 100 payments, distinct recipients, per payment", 100, 100, 75);
    }

    /// @dev By the contract, which limits its gas. Submitted straight to the token it is the direct transfer itself.
    function test_transferDirect() public {
        uint256 direct = measureDirect();
        IX402Facilitator.Authorization memory authorization = authorize(payer, VALUE, keccak256("single"));
        bytes memory signature = sign(PAYER_KEY, authorization, RECIPIENT);
        vm.prank(OPERATOR);
        facilitator.transferDirect(
            address(usdc), IX402Facilitator.Payment(authorization, signature), RECIPIENT
        );
        check("transferDirect", vm.lastCallGas().gasTotalUsed, direct, 115);
    }

    function test_transferBatch_5() public {
        measureTransferBatch("transferBatch, 5 payments, distinct payees, per payment", 5, 5, 78);
    }

    function test_transferBatch_25() public {
        measureTransferBatch("transferBatch, 25 payments, distinct payees, per payment", 25, 25, 74);
    }

    function test_transferBatch_25_onePayee() public {
        measureTransferBatch("transferBatch, 25 payments, one payee, per payment", 25, 1, 74);
    }

    function test_transferBatch_100() public {
        measureTransferBatch("transferBatch, 100 payments, distinct payees, per payment", 100, 100, 74);
    }

    /// @dev Measured on the original: 7,251 for the first call of a transaction, some 720 for each further one. A
    /// whole transferWithAuthorization of the original takes 86,267.
    function test_theProxyCostsWhatThatOfUsdcCosts() public {
        CallCosts costs = new CallCosts();
        costs.measure(address(usdc));
        uint256[2] memory behindProxy = [costs.ofCall(0), costs.ofCall(1)];
        costs.measure(MockUSDCProxy(payable(address(usdc))).implementation());
        assertNear(behindProxy[0] - costs.ofCall(0), 7_251, 100, "first call");
        assertNear(behindProxy[1] - costs.ofCall(1), 720, 100, "further calls");
    }

    function assertNear(uint256 actual, uint256 expected, uint256 tolerance, string memory what)
        private
        pure
    {
        if (actual + tolerance < expected || actual > expected + tolerance) {
            assertEq(actual, expected, what);
        }
    }

    function measureDirect() private returns (uint256 gasUsed) {
        IX402Facilitator.Authorization memory authorization = authorize(payer, VALUE, keccak256("direct"));
        bytes memory signature = sign(PAYER_KEY, authorization, RECIPIENT);
        vm.prank(OPERATOR);
        usdc.transferWithAuthorization(
            payer,
            RECIPIENT,
            VALUE,
            authorization.validAfter,
            authorization.validBefore,
            authorization.nonce,
            signature
        );
        gasUsed = vm.lastCallGas().gasTotalUsed;
        vm.snapshotValue("gas", "transferWithAuthorization", gasUsed);
    }

    function measureBatch(string memory name, uint256 count, uint256 recipients, uint256 budget) private {
        uint256 direct = measureDirect();
        IX402Facilitator.Group[] memory groups = groupsOf(count, recipients, false);
        vm.prank(OPERATOR);
        facilitator.settleBatch(address(usdc), groups);
        uint256 gasUsed = vm.lastCallGas().gasTotalUsed;
        assertEq(usdc.balanceOf(groups[0].recipient), 1 + VALUE * count / recipients, "paid");
        check(name, gasUsed / count, direct, budget);
    }

    function measureTransferBatch(string memory name, uint256 count, uint256 payees, uint256 budget) private {
        uint256 direct = measureDirect();
        IX402Facilitator.Group[] memory groups = groupsOf(count, payees, true);
        vm.prank(OPERATOR);
        facilitator.transferBatch(address(usdc), groups);
        uint256 gasUsed = vm.lastCallGas().gasTotalUsed;
        assertEq(usdc.balanceOf(groups[0].recipient), 1 + VALUE * count / payees, "paid");
        check(name, gasUsed / count, direct, budget);
    }

    /// @dev Payments of different payers; `direct` ones are signed to the recipients themselves.
    function groupsOf(uint256 count, uint256 recipients, bool direct)
        private
        returns (IX402Facilitator.Group[] memory groups)
    {
        groups = new IX402Facilitator.Group[](recipients);
        for (uint256 i = 0; i < recipients; ++i) {
            address recipient = address(uint160(uint256(keccak256(abi.encode("recipient", i)))));
            groups[i].recipient = recipient;
            groups[i].payments = new IX402Facilitator.Payment[](count / recipients);
            usdc.mint(recipient, 1);
            for (uint256 j = 0; j < count / recipients; ++j) {
                uint256 key = uint256(keccak256(abi.encode("payer", i, j)));
                usdc.mint(vm.addr(key), 2 * VALUE);
                IX402Facilitator.Authorization memory authorization =
                    authorize(vm.addr(key), VALUE, keccak256(abi.encode("nonce", i, j)));
                address to = direct ? recipient : address(facilitator);
                groups[i].payments[j] = IX402Facilitator.Payment(authorization, sign(key, authorization, to));
            }
        }
    }

    /// @dev `budget` in hundredths of the direct transfer.
    function check(string memory name, uint256 gasUsed, uint256 direct, uint256 budget) private {
        vm.snapshotValue("gas", name, gasUsed);
        vm.snapshotValue(
            "gas", string.concat(name, ", % of transferWithAuthorization"), gasUsed * 100 / direct
        );
        assertTrue(gasUsed * 100 <= direct * budget, name);
    }
}

/// @dev Two calls of a token in one transaction.
contract CallCosts {
    uint256[2] public ofCall;

    function measure(address token) external {
        uint256[2] memory costs;
        bytes memory data = abi.encodeCall(MockUSDC.balanceOf, (address(this)));
        for (uint256 i = 0; i < 2; ++i) {
            bool success;
            uint256 cost;
            assembly ("memory-safe") {
                let before := gas()
                success := call(gas(), token, 0, add(data, 0x20), mload(data), 0, 0)
                cost := sub(before, gas())
            }
            require(success);
            costs[i] = cost;
        }
        ofCall = costs;
    }
}
