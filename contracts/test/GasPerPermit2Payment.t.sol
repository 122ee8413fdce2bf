// SPDX-License-Identifier: MIT
pragma solidity 0.8.37;

import {IPermit2} from "../interfaces/IPermit2.sol";
import {Eip2612Permit, ExactWitness} from "../interfaces/IPermit2Proxies.sol";
import {IPermit2Settlement} from "../interfaces/IPermit2Settlement.sol";
import {IX402Facilitator} from "../interfaces/IX402Facilitator.sol";
import {Mock1271Wallet} from "../mocks/Mock1271Wallet.sol";
import {MockERC20} from "../mocks/MockERC20.sol";
import {MockPermitToken} from "../mocks/MockPermitToken.sol";
import {Permit2Fixture} from "./utils/Permit2Fixture.sol";

/**
 * @title Gas of a payment that was signed for Permit2, against a direct call of the proxy
 * @dev USDC as in {GasPerPaymentTest}, and the published code of Permit2. Isolated: each call is a transaction of its own.
 * Payers keep a balance and have approved Permit2 without end; recipients have a balance, and the facilitator has none.
 */
/// forge-config: default.isolate = true
contract GasPerPermit2PaymentTest is Permit2Fixture {
    uint256 private constant VALUE = 10_000;
    address private constant SECOND = address(uint160(uint256(keccak256("second"))));

    uint256 private direct;

    function setUp() public {
        deployWithPermit2();
        token = MockERC20(address(usdc));
        usdc.mint(RECIPIENT, 1);
        approve(payer);
        direct = measureProxy();
    }

    function test_settlePermit2() public {
        settlePermit2(adding(groupOf(false, true), VALUE, 1));
        check("settlePermit2, direct", vm.lastCallGas().gasTotalUsed, 117);
        settlePermit2(adding(groupOf(false, false), VALUE, 257));
        check("settlePermit2, through the contract", vm.lastCallGas().gasTotalUsed, 126);
        settlePermit2(adding(groupOf(true, false), VALUE, 513));
        check("settlePermit2, upto, through the contract", vm.lastCallGas().gasTotalUsed, 127);
    }

    /// @dev The payer approves with the payment, the first of that kind.
    function test_settlePermit2_withApproval() public {
        MockPermitToken permits = MockPermitToken(address(usdc));
        uint256 key = 0xb0b;
        usdc.mint(vm.addr(key), 2 * VALUE);
        IPermit2Settlement.Permit2Group memory group =
            adding(groupOf(false, true), vm.addr(key), key, VALUE, 1);
        group.payments[0].approval = signApproval(permits, key, VALUE);
        uint256 snapshot = vm.snapshotState();
        callProxyWithPermit(group);
        uint256 apart = vm.lastCallGas().gasTotalUsed;
        vm.snapshotValue("gas", "settleWithPermit of the proxy", apart);
        vm.revertToState(snapshot);
        settlePermit2(group);
        vm.snapshotValue("gas", "settlePermit2 with approval, direct", vm.lastCallGas().gasTotalUsed);
    }

    function test_settlePermit2Batch_25_direct() public {
        measureBatch("settlePermit2Batch, 25 payments, direct, distinct payees, per payment", 25, true, 79);
    }

    function test_settlePermit2Batch_25_directOnePayee() public {
        measureBatch("settlePermit2Batch, 25 payments, direct, one payee, per payment", 1, true, 67);
    }

    function test_settlePermit2Batch_25_oneRecipient() public {
        measureBatch("settlePermit2Batch, 25 payments, one recipient, per payment", 1, false, 67);
    }

    function test_settlePermit2Batch_25_distinctRecipients() public {
        measureBatch("settlePermit2Batch, 25 payments, distinct recipients, per payment", 25, false, 88);
    }

    function test_forwardReceivedWithPermit2() public {
        IPermit2Settlement.Permit2Group memory group = adding(groupOf(false, false), VALUE, 1);
        submitToProxy(group);
        vm.prank(RECOVERER);
        settlement.forwardReceivedWithPermit2(address(usdc), group.payments[0], STRANGER);
        vm.snapshotValue("gas", "forwardReceivedWithPermit2, new recipient", vm.lastCallGas().gasTotalUsed);
    }

    /// @dev Against the wallet's deployment in a transaction of its own, and the payment in another.
    function test_deployAndSettle() public {
        Create2Factory factory = new Create2Factory();
        bytes memory initCode = bytes.concat(codeOf("Mock1271Wallet"), abi.encode(payer));
        address wallet = factory.addressOf(initCode);
        usdc.mint(wallet, 2 * VALUE);
        IX402Facilitator.Payment memory payment = signPayment(PAYER_KEY, authorize(wallet, VALUE, "wallet"));
        bytes memory call = abi.encodeCall(
            facilitator.settle, (address(usdc), payment.authorization, payment.signature, RECIPIENT)
        );
        bytes memory deployment = abi.encodeCall(factory.deploy, (initCode));
        uint256 snapshot = vm.snapshotState();
        factory.deploy(initCode);
        uint256 apart = vm.lastCallGas().gasTotalUsed;
        settle(payment, RECIPIENT);
        apart += vm.lastCallGas().gasTotalUsed;
        vm.snapshotValue("gas", "deployment and settle, apart", apart);
        vm.revertToState(snapshot);
        vm.prank(OPERATOR);
        facilitator.deployAndSettle(wallet, address(factory), deployment, call);
        vm.snapshotValue("gas", "deployAndSettle", vm.lastCallGas().gasTotalUsed);
    }

    /// @dev Of the gas that the proxy may use, this is what a payer's wallet may use of it, where all else is as dear as it
    /// gets: USDC, a first nonce of its word, a permit, and a recipient that has nothing.
    function test_whatIsLeftForTheWalletOfAPayer() public {
        ThirstyWallet wallet = new ThirstyWallet();
        address account = address(wallet);
        usdc.mint(account, 2 * VALUE);
        IPermit2Settlement.Permit2Group memory group =
            adding(groupOf(false, true), account, PAYER_KEY, VALUE, 1);
        group.recipient = SECOND;
        group.payments[0].approval =
            abi.encode(Eip2612Permit(VALUE, NOW + 1 hours, bytes32(0), bytes32(0), 27));
        (uint256 enough, uint256 tooMuch) = (0, facilitator.PULL_GAS());
        while (tooMuch - enough > 1) {
            uint256 middle = (enough + tooMuch) / 2;
            wallet.wants(middle);
            uint256 snapshot = vm.snapshotState();
            vm.prank(OPERATOR);
            (bool success,) = address(facilitator).call(abi.encodeCall(settlement.settlePermit2, (group)));
            vm.revertToState(snapshot);
            (enough, tooMuch) = success ? (middle, tooMuch) : (enough, middle);
        }
        vm.snapshotValue("gas", "gas that a wallet sees in a Permit2 payment with approval", enough);
        assertTrue(enough > 100_000, "gas of the wallet");
    }

    function measureProxy() private returns (uint256 gasUsed) {
        submitToProxy(adding(groupOf(false, true), VALUE, 0xf00d));
        gasUsed = vm.lastCallGas().gasTotalUsed;
        vm.snapshotValue("gas", "settle of the proxy", gasUsed);
    }

    function measureBatch(string memory name, uint256 recipients, bool isDirect, uint256 budget) private {
        IPermit2Settlement.Permit2Group[] memory groups = new IPermit2Settlement.Permit2Group[](recipients);
        for (uint256 i = 0; i < recipients; ++i) {
            groups[i] = groupOf(false, isDirect);
            groups[i].recipient = address(uint160(uint256(keccak256(abi.encode("recipient", i)))));
            usdc.mint(groups[i].recipient, 1);
            for (uint256 j = 0; j < 25 / recipients; ++j) {
                uint256 key = uint256(keccak256(abi.encode("payer", i, j)));
                usdc.mint(vm.addr(key), 2 * VALUE);
                approve(vm.addr(key));
                uint256 nonce = uint256(keccak256(abi.encode("nonce", i, j)));
                groups[i] = adding(groups[i], vm.addr(key), key, VALUE, nonce);
            }
        }
        vm.prank(OPERATOR);
        settlement.settlePermit2Batch(groups);
        uint256 gasUsed = vm.lastCallGas().gasTotalUsed;
        assertEq(usdc.balanceOf(groups[0].recipient), 1 + VALUE * 25 / recipients, "paid");
        check(name, gasUsed / 25, budget);
    }

    function callProxyWithPermit(IPermit2Settlement.Permit2Group memory group) private {
        IPermit2Settlement.Permit2Payment memory payment = group.payments[0];
        Eip2612Permit memory approval = abi.decode(payment.approval, (Eip2612Permit));
        IPermit2.PermitTransferFrom memory permit = IPermit2.PermitTransferFrom(
            IPermit2.TokenPermissions(group.token, payment.permitted), payment.nonce, payment.deadline
        );
        vm.prank(OPERATOR);
        EXACT_PROXY.settleWithPermit(
            approval,
            permit,
            payment.payer,
            ExactWitness(group.recipient, payment.validAfter),
            payment.signature
        );
    }

    function approve(address account) private {
        vm.prank(account);
        usdc.approve(address(PERMIT2), type(uint256).max);
    }

    /// @dev `budget` in hundredths of the direct call.
    function check(string memory name, uint256 gasUsed, uint256 budget) private {
        vm.snapshotValue("gas", name, gasUsed);
        vm.snapshotValue("gas", string.concat(name, ", % of the proxy's settle"), gasUsed * 100 / direct);
        assertTrue(gasUsed * 100 <= direct * budget, name);
    }
}

contract Create2Factory {
    function deploy(bytes memory initCode) external returns (address deployed) {
        assembly ("memory-safe") {
            deployed := create2(0, add(initCode, 0x20), mload(initCode), 0)
        }
    }

    function addressOf(bytes memory initCode) external view returns (address) {
        bytes32 digest = keccak256(abi.encodePacked(hex"ff", address(this), bytes32(0), keccak256(initCode)));
        return address(uint160(uint256(digest)));
    }
}

/// @dev Takes any signature, given the gas it wants for each.
contract ThirstyWallet {
    uint256 private _wanted;

    function wants(uint256 amount) external {
        _wanted = amount;
    }

    function isValidSignature(bytes32, bytes calldata signature) external view returns (bytes4) {
        // The permit's own is of no concern here: it comes first, and has more gas.
        if (signature.length == 65 && bytes32(signature) == 0) return 0x1626ba7e;
        return gasleft() < _wanted ? bytes4(0xffffffff) : bytes4(0x1626ba7e);
    }
}
